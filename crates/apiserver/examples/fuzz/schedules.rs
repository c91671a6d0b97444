//! Random schedules that are almost right, and times to begin with.

use jiff::Timestamp;

use crate::make::Maker;

const PARTS: [&str; 32] = [
    "*",
    "?",
    "*/0",
    "*/7",
    "*/61",
    "0",
    "1",
    "5",
    "7",
    "12",
    "23",
    "24",
    "29",
    "30",
    "31",
    "59",
    "60",
    "5-1",
    "1-5",
    "10-50/7",
    "*-3",
    "?-/",
    "1-2-3",
    "1/2/3",
    "-1",
    "+4",
    "99999999999999999999",
    "MON",
    "feb",
    "sun-SAT",
    "",
    "ä",
];
const WORDS: [&str; 12] = [
    "@hourly",
    "@daily",
    "@midnight",
    "@weekly",
    "@monthly",
    "@yearly",
    "@annually",
    "@reboot",
    "@every ",
    "@every",
    "@",
    "@every 1h2m3s",
];
const LENGTHS: [&str; 16] = [
    "1",
    "0",
    "s",
    "m",
    "h",
    "ms",
    "ns",
    "µs",
    ".5",
    "-",
    "+",
    "1s",
    "90s",
    "9223372036",
    "999999999999999999999h",
    " ",
];
const ZONES: [&str; 14] = [
    "",
    "UTC",
    "Local",
    "Asia/Shanghai",
    "America/New_York",
    "America/St_Johns",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Africa/Casablanca",
    "Antarctica/Troll",
    "Europe/Dublin",
    "Mars/Base",
    "../etc/passwd",
    "\u{0}",
];
/// Seconds since 1970: what jiff can hold, changes of clocks, and days of our time.
const TIMES: [i64; 10] = [
    -377_705_023_201,
    253_402_207_200,
    0,
    -1,
    951_782_400,
    1_289_098_800,
    1_325_203_200,
    1_774_749_600,
    1_793_494_800,
    1_767_225_600,
];

/// A schedule, as people and their programs write it.
pub(crate) fn text(maker: &mut Maker) -> String {
    let zone = match maker.below(6) {
        0 => format!("TZ={} ", maker.pick(&ZONES, "")),
        1 => format!("CRON_TZ={} ", maker.pick(&ZONES, "")),
        2 if maker.one_in(8) => format!("TZ={}", maker.pick(&ZONES, "")),
        _ => String::new(),
    };
    let rule = if maker.one_in(4) {
        let mut word = maker.pick(&WORDS, "").to_owned();
        if word.ends_with(' ') {
            (0..maker.below(5)).for_each(|_| word.push_str(maker.pick(&LENGTHS, "")));
        }
        word
    } else {
        let count = if maker.one_in(10) { maker.below(9) } else { 5 };
        let fields: Vec<String> = (0..count).map(|_| field(maker)).collect();
        fields.join(if maker.one_in(10) { "\t " } else { " " })
    };
    let mut text = format!("{zone}{rule}");
    if maker.one_in(5) {
        let mut bytes = text.into_bytes();
        maker.damage(&mut bytes);
        text = String::from_utf8_lossy(&bytes).into_owned();
    }
    text
}

fn field(maker: &mut Maker) -> String {
    // Most schedules shall be right, so that times are looked for.
    if maker.one_in(2) {
        return "*".to_owned();
    }
    let mut parts = vec![maker.pick(&PARTS, "*")];
    while maker.one_in(4) {
        parts.push(maker.pick(&PARTS, "*"));
    }
    parts.join(",")
}

/// A time somewhere, often close to one at which clocks are set.
pub(crate) fn time(maker: &mut Maker) -> Timestamp {
    let near = i64::try_from(maker.below(200_000)).unwrap_or_default() - 100_000;
    let seconds = maker.pick(&TIMES, 0).saturating_add(near);
    Timestamp::from_second(seconds).unwrap_or(Timestamp::UNIX_EPOCH)
}
