//! How many pods are added, removed and updated. All of the arithmetic of scaling and rolling out is here.

/// What the spec allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// How many pods.
    pub replicas: i64,
    /// How many of them stay on the old revision.
    pub partition: i64,
    /// How many more there may be.
    pub max_surge: i64,
    /// How many may be unavailable.
    pub max_unavailable: i64,
    /// How many may be unavailable while pods are added.
    pub scale_max_unavailable: i64,
    /// Pods that wait for their deletion are not counted.
    pub exclude_preparing_delete: bool,
    /// Pods may go back to the current revision when the partition grows.
    pub may_roll_back: bool,
}

/// What there is. Only active pods count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All pods.
    pub all: i64,
    /// Those on the old side.
    pub old: i64,
    /// Those that wait for their deletion.
    pub preparing: i64,
    /// Of these, on the old side.
    pub preparing_old: i64,
    /// Not waiting for deletion, but asked to go, on the new side.
    pub specified_new: i64,
    /// The same on the old side.
    pub specified_old: i64,
    /// Waiting for deletion, or not asked to go and not available.
    pub unavailable: i64,
}

/// What follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Numbers {
    /// How much of the surge is used.
    pub surge: i64,
    /// Pods to add.
    pub up: i64,
    /// Of these, on the old side.
    pub up_old: i64,
    /// How many may be added now.
    pub up_limit: i64,
    /// Pods to remove.
    pub down: i64,
    /// Of these, from the old side at most.
    pub down_old: i64,
    /// How many ready pods may be removed now.
    pub delete_ready: i64,
    /// Pods to update; below zero, to roll back.
    pub update: i64,
    /// How many may be unavailable while they are.
    pub update_max: i64,
}

/// The arithmetic.
pub fn numbers(limits: &Limits, counts: &Counts) -> Numbers {
    let Limits { replicas, partition, max_surge, max_unavailable, .. } = *limits;
    let specified = counts.specified_new + counts.specified_old;
    let active_old = counts.old - counts.preparing_old;
    let active_new = counts.all - counts.old - (counts.preparing - counts.preparing_old);
    let (mut diff_old, mut diff_new) = (active_old - partition, active_new - (replicas - partition));
    if !limits.may_roll_back {
        diff_old = diff_old.max(0);
        diff_new = diff_new.min(0);
    }

    let (surge, surge_old) =
        if max_surge > 0 { surge(limits, counts, specified, diff_old, diff_new) } else { (0, 0) };
    let left_out = |preparing| if limits.exclude_preparing_delete { preparing } else { 0 };
    let count = counts.all - left_out(counts.preparing);
    let count_old = counts.old - left_out(counts.preparing_old);
    let (want, want_old) = (replicas + surge, partition + surge_old);

    let up = (want - count).max(0);
    let down = (count - specified - want).max(0);
    // Both sides short, or both too large, is for scaling to mend: moving a pod then would break the partition, which the
    // original does when it may roll back while new pods are held up.
    let update = if diff_old.signum() == diff_new.signum() {
        0
    } else if diff_old.abs() <= diff_new.abs() {
        diff_old
    } else {
        -diff_new
    };
    let spare = max_unavailable + counts.all - replicas;
    Numbers {
        surge,
        up,
        up_old: if up > 0 { (want_old - count_old).max(0) } else { 0 },
        up_limit: up.min((limits.scale_max_unavailable - counts.unavailable).max(0)),
        down,
        down_old: if down > 0 { (count_old - counts.specified_old - want_old).max(0) } else { 0 },
        delete_ready: if specified > 0 || down > 0 { (spare - counts.unavailable).max(0) } else { 0 },
        update,
        update_max: if update == 0 { 0 } else { spare },
    }
}

/// How much of the surge is used, and how much of that on the old side: for pods that were asked to go, or for pods that
/// change sides, whichever needs more.
fn surge(limits: &Limits, counts: &Counts, specified: i64, diff_old: i64, diff_new: i64) -> (i64, i64) {
    let for_specified = if specified > 0 {
        (counts.unavailable + specified - limits.max_unavailable).clamp(0, specified)
    } else {
        0
    };
    let for_update =
        if diff_old.signum() * diff_new.signum() < 0 { diff_old.abs().min(diff_new.abs()) } else { 0 };
    let (needed, needed_old) = if for_specified >= for_update {
        (for_specified, (for_specified - counts.specified_new).max(0))
    } else {
        (for_update, if diff_old < 0 { for_update } else { 0 })
    };
    let used = limits.max_surge.min(needed);
    (used, used.min(needed_old))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pods are O (old) or N (new), with x (not available), d (asked to go) or p (waits for deletion and asked to go).
    fn counts(pods: &str) -> Counts {
        let mut counts = Counts::default();
        for pod in pods.split_whitespace() {
            let (pod, times) =
                pod.split_once('*').map_or((pod, 1), |(pod, times)| (pod, times.parse().unwrap()));
            let old = i64::from(pod.starts_with('O')) * times;
            counts.all += times;
            counts.old += old;
            match pod.get(1..).unwrap() {
                "" => {}
                "x" => counts.unavailable += times,
                "d" => {
                    counts.specified_old += old;
                    counts.specified_new += times - old;
                }
                "p" => {
                    counts.preparing += times;
                    counts.preparing_old += old;
                    counts.unavailable += times;
                }
                other => panic!("{other}"),
            }
        }
        counts
    }

    #[track_caller]
    fn check(limits: [i64; 4], options: &str, pods: &str, expected: &str) {
        let [replicas, partition, max_unavailable, max_surge] = limits;
        let limits = Limits {
            replicas,
            partition,
            max_surge,
            max_unavailable,
            scale_max_unavailable: if options.contains("A=2") { 2 } else { i64::from(i32::MAX) },
            exclude_preparing_delete: options.contains("exclude"),
            may_roll_back: options.contains("rollback"),
        };
        let Numbers { surge, up, up_old, up_limit, down, down_old, delete_ready, update, update_max } =
            numbers(&limits, &counts(pods));
        let named = [
            ("use", surge, 0),
            ("up", up, 0),
            ("upOld", up_old, 0),
            ("upLimit", up_limit, up),
            ("down", down, 0),
            ("downOld", down_old, 0),
            ("delReady", delete_ready, 0),
            ("upd", update, 0),
            ("updMax", update_max, 0),
        ];
        let text: Vec<String> = named
            .iter()
            .filter(|(_, value, usual)| value != usual)
            .map(|(name, value, _)| format!("{name} {value}"))
            .collect();
        assert_eq!(text.join(", "), expected);
    }

    /// CLONESET-14, CLONESET-21, CLONESET-22, CLONESET-24: the numbers behind them, checked against the original.
    #[test]
    fn numbers_of_the_specification() {
        check([5, 0, 1, 0], "", "", "up 5");
        check([5, 3, 1, 0], "", "O*5", "upd 2, updMax 1");
        check([5, 3, 1, 1], "", "O*5", "use 1, up 1, upd 2, updMax 1");
        check([5, 3, 1, 1], "", "O*5 Nx", "use 1, upd 1, updMax 2");
        check([5, 3, 1, 1], "", "Od O*4 Nx", "use 1, delReady 1, upd 1, updMax 2");
        check([5, 3, 1, 1], "", "O*4 Nx", "use 1, up 1, upd 1, updMax 1");
        check([5, 3, 1, 1], "", "O*4 Nx Nx", "down 1, downOld 1");
        check([5, 3, 1, 1], "", "O*4 N Nx", "down 1, downOld 1, delReady 1");
        check([5, 0, 0, 1], "", "Nd N*4", "use 1, up 1");
        check([5, 0, 0, 1], "", "Nd N*4 Nx", "use 1");
        check([5, 0, 0, 1], "", "Nd N*5", "use 1, delReady 1");
        check([5, 0, 0, 1], "", "O*5 N", "use 1, upd 4, updMax 1");
        check([5, 4, 2, 0], "rollback", "N*4 O", "upd -3, updMax 2");
        check([5, 4, 2, 0], "", "N*4 O", "");
        check([6, 3, 1, 0], "rollback A=2", "O Nx Nx", "up 3, upOld 2, upLimit 0");
        check([6, 0, 1, 0], "A=2", "N N Nx", "up 3, upLimit 1");
        check([3, 0, 1, 0], "", "N N Np", "");
        check([3, 0, 1, 0], "exclude", "N N Np", "up 1");
        check([6, 0, 2, 0], "", "O*7 N*3", "down 4, downOld 7, delReady 6, upd 3, updMax 6");
        check([6, 4, 2, 0], "", "O*7 N*3", "down 4, downOld 3, delReady 6");
        check([12, 8, 2, 0], "", "O*6 N*4", "up 2, upOld 2");
    }
}
