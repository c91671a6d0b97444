//! How many pods a workload wants, read at paths of the object.

use serde_json::Value;

/// The sum of the integers at these paths, such as `spec.roles.1.replicas`. `what` names the object in the error.
pub fn total_at<'p>(
    object: &Value,
    paths: impl IntoIterator<Item = &'p str>,
    what: &str,
) -> Result<u32, String> {
    let mut total = 0_i64;
    for path in paths {
        let number = at(object, path).ok_or_else(|| format!("path {path:?} does not exist in {what}"))?;
        let number = number.as_i64().ok_or_else(|| format!("path {path:?} of {what} is not an integer"))?;
        total = total.saturating_add(number.max(0));
    }
    Ok(u32::try_from(total).unwrap_or(u32::MAX))
}

fn at<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    let found = path.trim_start_matches('.').split('.').try_fold(object, |here, key| match here {
        Value::Object(members) => members.get(key),
        Value::Array(items) => items.get(key.parse::<usize>().ok()?),
        _ => None,
    });
    found.filter(|value| !value.is_null())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// SPREAD-15: a path that leads nowhere is an error that names it.
    #[test]
    fn numbers_are_added_up_along_paths() {
        let object = json!({"spec": {"roles": [{"replicas": 1}, {"replicas": 4}], "name": "x"}});
        let of = |paths: &[&str]| total_at(&object, paths.iter().copied(), "TFJob shop/train");
        assert_eq!(of(&["spec.roles.0.replicas", "spec.roles.1.replicas"]), Ok(5));
        assert_eq!(of(&[]), Ok(0));
        let missing = "path \"spec.roles.7.replicas\" does not exist in TFJob shop/train";
        assert_eq!(of(&["spec.roles.7.replicas"]), Err(missing.to_owned()));
        let text = "path \"spec.name\" of TFJob shop/train is not an integer";
        assert_eq!(of(&["spec.name"]), Err(text.to_owned()));
        assert!(of(&["spec.name.x"]).is_err() && of(&[""]).is_err());
    }
}
