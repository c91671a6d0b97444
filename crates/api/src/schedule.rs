//! How subsets share pods between them: by a fixed plan, or by where pods can be scheduled.

open_enum! {
    /// Whether pods may move to another subset when they cannot be scheduled.
    pub enum ScheduleType {
        /// Pods stay in their subset.
        Fixed = "Fixed",
        /// Pods that cannot be scheduled move to another subset.
        Adaptive = "Adaptive",
    }
}
