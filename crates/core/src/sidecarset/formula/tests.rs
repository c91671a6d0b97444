use proptest::prelude::*;

use super::*;

/// `expected` is the result, or the text of the mistake.
#[track_caller]
fn check(text: &str, resource: Resource, variable: &str, expected: &str) {
    let variable = Quantity::parse(variable).unwrap();
    let result = Formula::parse(text, resource).and_then(|formula| formula.evaluate(&variable));
    assert_eq!(result.unwrap_or_else(|error| error.to_string()), expected, "{text} of {variable}");
}

#[track_caller]
fn refused(text: &str, resource: Resource, expected: &str) {
    let result = Formula::parse(text, resource).and_then(|formula| formula.check());
    assert_eq!(result.map_or_else(|error| error.to_string(), |()| "fine".to_owned()), expected, "{text}");
}

/// SIDECARSET-17, and what was recorded from the original where it computes exactly.
#[test]
fn formulas_give_the_amounts_that_people_expect() {
    for (text, variable, expected) in [
        ("max(cpu*50%, 50m)", "600m", "300m"),
        ("max(cpu*50%, 50m)", "150m", "75m"),
        ("MAX(CPU*50%, 50m)", "150m", "75m"),
        ("0.5*cpu - 0.3*max(0, cpu-4) + 0.3*max(0, cpu-8)", "10", "3800m"),
        ("max(40m, 20)", "1", "20"),
        ("cpu*0.29", "400m", "116m"),
        ("cpu/3", "1", "333m"),
        ("cpu", "1500m", "1500m"),
        ("1.5", "1", "1500m"),
        ("1e3", "1", "1k"),
        ("1e-2 + .5", "1", "510m"),
        ("-1 + cpu", "3", "2"),
        ("2 - -cpu", "3", "5"),
        ("min(cpu, 2) * 2", "3", "4"),
        ("(1 + 2) * cpu", "1", "3"),
        ("10/4*cpu", "1", "2500m"),
        ("cpu-100m", "100m", "0"),
    ] {
        check(text, Resource::Cpu, variable, expected);
    }
    for (text, variable, expected) in [
        ("200Mi", "1Gi", "200Mi"),
        ("1Gi + 100Mi", "1", "1124Mi"),
        ("memory*0.1", "100Mi", "10Mi"),
        ("memory*0.1", "10M", "1M"),
        ("memory/7", "100Mi", "14979658"),
        ("memory*0.1", "1Gi", "107374183"),
        ("memory*10%", "30Mi", "3Mi"),
        ("max(memory, 1)", "10Mi", "10Mi"),
        ("max(memory, 1Gi)", "10M", "1Gi"),
        ("1 + memory", "1Ki", "1025"),
    ] {
        check(text, Resource::Memory, variable, expected);
    }
}

/// SIDECARSET-18
#[test]
fn less_than_nothing_is_refused_only_for_a_pod() {
    check("cpu-100m", Resource::Cpu, "50m", "calculation result is negative: -50m");
    check("memory-100Mi", Resource::Memory, "1", "calculation result is negative: -104857599");
    refused("memory-100Mi", Resource::Memory, "fine");
    refused("-cpu", Resource::Cpu, "fine");
}

/// SIDECARSET-19, with the texts that were recorded from the original.
#[test]
fn mistakes_are_found_when_the_set_is_written() {
    for (text, expected) in [
        ("(cpu", "parse error: syntax error at line 1, col 5"),
        ("cpu+", "parse error: syntax error at line 1, col 5"),
        ("1 2", "parse error: syntax error at line 1, col 4"),
        ("cpu ^ 2", "parse error: syntax error at line 1, col 6"),
        ("", "parse error: syntax error at line 1, col 1"),
        ("foo+1", "undefined variable: foo"),
        ("memory*2", "undefined variable: memory"),
        ("avg(cpu,1)", "unknown function: avg"),
        ("max(cpu)", "max function requires exactly 2 arguments, got 1"),
        ("max()", "max function requires exactly 2 arguments, got 0"),
        ("max(cpu,1,2)", "max function requires exactly 2 arguments, got 3"),
        ("cpu*cpu", "multiplication of two quantities"),
        ("1/cpu", "division by quantity"),
        ("cpu/0", "division by zero"),
        ("cpu/(1-1)", "division by zero"),
        ("5x", "parse error: \"5x\" is neither a number nor a quantity"),
        ("100mi", "parse error: \"100mi\" is neither a number nor a quantity"),
        ("1e", "parse error: \"1e\" is neither a number nor a quantity"),
        ("1.2.3", "parse error: \"1.2.3\" is neither a number nor a quantity"),
        ("1Ei", "parse error: \"1Ei\" is neither a number nor a quantity"),
        (".", "parse error: \".\" is neither a number nor a quantity"),
    ] {
        refused(text, Resource::Cpu, expected);
    }
}

#[test]
fn numbers_that_do_not_fit_are_mistakes_and_brackets_have_an_end() {
    let long = "9".repeat(60);
    refused(&long, Resource::Cpu, &format!("parse error: {long:?} is neither a number nor a quantity"));
    refused(&format!("{0}*{0}*{0}", "1e20"), Resource::Cpu, "calculation result is out of range");
    let deep = format!("{}cpu{}", "(".repeat(5000), ")".repeat(5000));
    assert!(Formula::parse(&deep, Resource::Cpu).is_err());
    assert!(Formula::parse(&"-".repeat(5000), Resource::Cpu).is_err());
    let wide = vec!["cpu"; 2000].join("+");
    check(&wide, Resource::Cpu, "1m", "2");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    /// Whatever is written: there is an answer, and what passes the check fails for a pod only by its size.
    #[test]
    fn any_text_gets_an_answer(text in "[a-z0-9.%+*/(), -]{0,24}|(max|min|cpu|[0-9]{1,3}|[-+*/(,)]| ){0,12}", millis in 0_i64..5000) {
        if let Ok(formula) = Formula::parse(&text, Resource::Cpu)
            && formula.check().is_ok()
        {
            let variable = Quantity::parse(&format!("{millis}m")).unwrap();
            match formula.evaluate(&variable) {
                Ok(amount) => prop_assert!(Quantity::parse(&amount).is_ok()),
                Err(error) => prop_assert!(matches!(error, Error::Negative(_) | Error::Range), "{}", error),
            }
        }
    }

    #[test]
    fn a_share_is_never_more_than_the_whole(millis in 0_i64..1_000_000, percent in 0..=100_u32) {
        let variable = Quantity::parse(&format!("{millis}m")).unwrap();
        let formula = Formula::parse(&format!("cpu*{percent}%"), Resource::Cpu).unwrap();
        let share = Quantity::parse(&formula.evaluate(&variable).unwrap()).unwrap();
        prop_assert_eq!(share.millis(), i128::from(millis) * i128::from(percent) / 100);
    }
}
