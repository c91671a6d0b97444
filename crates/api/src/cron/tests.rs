use super::*;
use proptest::prelude::*;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// The next times of a schedule in a zone, as clocks there show them.
fn times(schedule: &str, zone: &str, from: &str, count: usize) -> Vec<String> {
    let zone = time_zone(zone).unwrap();
    let schedule = Schedule::parse(schedule).unwrap().in_zone(zone.clone());
    let mut now = at(from);
    let next = std::iter::from_fn(|| {
        now = schedule.next(now)?;
        Some(now.to_zoned(zone.clone()).strftime("%a %Y-%m-%d %H:%M %Z").to_string())
    });
    next.take(count).collect()
}

#[track_caller]
fn check(schedule: &str, from: &str, expected: &[&str]) {
    let seen: Vec<String> = times(schedule, "UTC", from, expected.len());
    let seen: Vec<&str> = seen.iter().map(|text| text.trim_end_matches(" UTC")).collect();
    assert_eq!(seen, expected, "{schedule}");
}

#[test]
fn fields_have_numbers_names_ranges_lists_and_steps() {
    let new_year = "2026-01-01T00:00:00Z";
    check("* * * * *", new_year, &["Thu 2026-01-01 00:01", "Thu 2026-01-01 00:02"]);
    check(
        "*/20 * * * ?",
        new_year,
        &["Thu 2026-01-01 00:20", "Thu 2026-01-01 00:40", "Thu 2026-01-01 01:00"],
    );
    check(
        "50/5 1 * * *",
        new_year,
        &["Thu 2026-01-01 01:50", "Thu 2026-01-01 01:55", "Fri 2026-01-02 01:50"],
    );
    check(
        "5,10-20/10 3 * * *",
        new_year,
        &["Thu 2026-01-01 03:05", "Thu 2026-01-01 03:10", "Thu 2026-01-01 03:20"],
    );
    check("0 12 * FEB-apr/2 Mon", new_year, &["Mon 2026-02-02 12:00", "Mon 2026-02-09 12:00"]);
    check("30 6-16/4 * * 1-5", "2026-01-02T14:30:00Z", &["Mon 2026-01-05 06:30", "Mon 2026-01-05 10:30"]);
    check("0 0 29 2 *", new_year, &["Tue 2028-02-29 00:00"]);
    check("0 0 31 * *", "2026-01-31T00:00:00Z", &["Tue 2026-03-31 00:00"]);
}

#[test]
fn a_day_is_right_by_number_or_by_weekday_unless_one_is_a_star() {
    check(
        "0 0 13 * fri",
        "2026-01-01T00:00:00Z",
        &["Fri 2026-01-02 00:00", "Fri 2026-01-09 00:00", "Tue 2026-01-13 00:00"],
    );
    check("0 0 */1 * fri", "2026-01-01T00:00:00Z", &["Fri 2026-01-02 00:00", "Fri 2026-01-09 00:00"]);
    check(
        "0 0 */10 * fri",
        "2026-01-01T00:00:00Z",
        &["Fri 2026-01-02 00:00", "Fri 2026-01-09 00:00", "Sun 2026-01-11 00:00"],
    );
}

#[test]
fn words_stand_for_schedules() {
    let from = "2026-03-14T15:09:26Z";
    check("@yearly", from, &["Fri 2027-01-01 00:00"]);
    check("@annually", from, &["Fri 2027-01-01 00:00"]);
    check("@monthly", from, &["Wed 2026-04-01 00:00"]);
    check("@weekly", from, &["Sun 2026-03-15 00:00"]);
    check("@daily", from, &["Sun 2026-03-15 00:00"]);
    check("@midnight", from, &["Sun 2026-03-15 00:00"]);
    check("@hourly", from, &["Sat 2026-03-14 16:00"]);
    // The original takes what is below zero as a second.
    assert_eq!(Schedule::parse("@every -5s").unwrap().next(at(from)), Some(at("2026-03-14T15:09:27Z")));
    let every = Schedule::parse("@every 1m30.7s").unwrap();
    assert_eq!(every.next(at("2026-01-01T00:00:00.5Z")), Some(at("2026-01-01T00:01:30Z")));
    assert_eq!(Schedule::parse("@every 1ms").unwrap().next(at(from)), Some(at("2026-03-14T15:09:27Z")));
}

#[test]
fn clocks_that_are_set_leave_times_out_or_show_them_twice() {
    // In the night of 8 March 2026 the clocks of New York go from 02:00 to 03:00, on 1 November from 02:00 to 01:00.
    let new_york = |schedule: &str, from: &str, count| times(schedule, "America/New_York", from, count);
    assert_eq!(
        new_york("30 2 * * *", "2026-03-07T00:00:00Z", 3),
        ["Sat 2026-03-07 02:30 EST", "Mon 2026-03-09 02:30 EDT", "Tue 2026-03-10 02:30 EDT"]
    );
    assert_eq!(
        new_york("30 1 * * *", "2026-10-31T12:00:00Z", 3),
        ["Sun 2026-11-01 01:30 EDT", "Sun 2026-11-01 01:30 EST", "Mon 2026-11-02 01:30 EST"]
    );
    assert_eq!(
        new_york("0 * * * *", "2026-11-01T04:30:00Z", 3),
        ["Sun 2026-11-01 01:00 EDT", "Sun 2026-11-01 01:00 EST", "Sun 2026-11-01 02:00 EST"]
    );
    assert_eq!(times("0 9 * * *", "Asia/Kolkata", "2026-06-01T00:00:00Z", 1), ["Mon 2026-06-01 09:00 IST"]);
    // Lord Howe sets its clocks by half an hour.
    assert_eq!(
        times("45 1 * * *", "Australia/Lord_Howe", "2026-04-04T00:00:00Z", 2),
        ["Sun 2026-04-05 01:45 +11", "Sun 2026-04-05 01:45 +1030"]
    );
    // There is no midnight in Beirut on 29 March 2026.
    assert_eq!(times("0 0 * * *", "Asia/Beirut", "2026-03-28T12:00:00Z", 1), ["Mon 2026-03-30 00:00 EEST"]);
}

/// In St. John's the clocks went back past midnight until 2011, from 00:01 to 23:01.
#[test]
fn the_next_time_is_later_also_where_midnight_comes_twice() {
    let zone = time_zone("America/St_Johns").unwrap();
    let schedule = Schedule::parse("*/10 * * * *").unwrap().in_zone(zone);
    let mut now = at("2010-11-06T23:00:00Z");
    for _ in 0..60 {
        let next = schedule.next(now).unwrap();
        assert_eq!(next.duration_since(now).as_secs(), 600, "after {now}");
        now = next;
    }
    let daily = Schedule::parse("0 0 7 * *").unwrap().in_zone(time_zone("America/St_Johns").unwrap());
    for minute in 0..180 {
        let now = at("2010-11-07T01:00:00Z") + jiff::SignedDuration::from_mins(minute);
        assert!(daily.next(now).unwrap() > now, "after {now}");
    }
    assert_eq!(daily.next(at("2010-11-07T02:45:00Z")), Some(at("2010-11-07T03:30:00Z")));
}

#[test]
fn a_schedule_may_name_its_zone() {
    let schedule = Schedule::parse("CRON_TZ=Asia/Tokyo 0 6 * * *").unwrap();
    assert_eq!(schedule.next(at("2026-01-01T00:00:00Z")), Some(at("2026-01-01T21:00:00Z")));
    assert_eq!(
        Schedule::parse("TZ=Asia/Tokyo @daily").unwrap().next(at("2026-01-01T00:00:00Z")),
        Some(at("2026-01-01T15:00:00Z"))
    );
}

#[test]
fn times_that_never_come_are_none() {
    for never in ["0 0 31 2 *", "0 0 30 feb *", ", * * * *"] {
        assert_eq!(Schedule::parse(never).unwrap().next(at("2026-01-01T00:00:00Z")), None, "{never}");
    }
}

#[test]
fn mistakes_are_named() {
    for (text, expected) in [
        ("", "empty spec string"),
        ("* * *", "expected exactly 5 fields, found 3: [* * *]"),
        ("* * * * * *", "expected exactly 5 fields, found 6: [* * * * * *]"),
        ("@often", "unrecognized descriptor: @often"),
        ("@every often", "failed to parse duration @every often: time: invalid duration \"often\""),
        ("@every 1", "failed to parse duration @every 1: time: missing unit in duration \"1\""),
        ("@every 1x", "failed to parse duration @every 1x: time: unknown unit \"x\" in duration \"1x\""),
        ("@every", "unrecognized descriptor: @every"),
        (
            "@every 999999h9999999999s",
            "failed to parse duration @every 999999h9999999999s: time: invalid duration \"999999h9999999999s\"",
        ),
        ("TZ=Nowhere/Else * * * * *", "provided bad location Nowhere/Else: unknown time zone Nowhere/Else"),
        ("TZ=UTC", "time zone without a schedule: TZ=UTC"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("a * * * *", "failed to parse int from a: strconv.Atoi: parsing \"a\": invalid syntax"),
        ("* * * * 7", "end of range (7) above maximum (6): 7"),
        (
            "99999999999999999999 * * * *",
            "failed to parse int from 99999999999999999999: strconv.Atoi: parsing \"99999999999999999999\": value out of range",
        ),
    ] {
        assert_eq!(Schedule::parse(text).unwrap_err().to_string(), expected);
    }
}

proptest! {
    #[test]
    fn the_next_time_is_later_and_nothing_comes_between(
        minute in 0..60u8, hour in 0..24u8, from in 1_700_000_000..1_900_000_000i64,
        zone in prop::sample::select(vec!["UTC", "Europe/Berlin", "America/Sao_Paulo", "Australia/Lord_Howe"]),
    ) {
        let zone = time_zone(zone).unwrap();
        let schedule = Schedule::parse(&format!("{minute} {hour} * * *")).unwrap().in_zone(zone.clone());
        let from = Timestamp::from_second(from).unwrap();
        let next = schedule.next(from).unwrap();
        prop_assert!(next > from);
        let shown = next.to_zoned(zone.clone());
        prop_assert_eq!((shown.minute(), shown.hour()), (minute.try_into().unwrap(), hour.try_into().unwrap()));
        // The same, looked for minute by minute.
        let first = (from.as_second().div_euclid(60) + 1) * 60;
        let slow = (0..4 * 24 * 60).map(|n| Timestamp::from_second(first + n * 60).unwrap()).find(|time| {
            let shown = time.to_zoned(zone.clone());
            (shown.minute(), shown.hour()) == (minute.try_into().unwrap(), hour.try_into().unwrap())
        });
        prop_assert_eq!(Some(next), slow);
    }
}

#[test]
fn any_text_is_a_schedule_or_a_mistake() {
    let few = "(@every |TZ=)?[0-9a-z*?/, -]{0,24}";
    // Fields of the right form are found by chance too rarely.
    let field = "([*?]|[0-9]{1,2}(-[0-9]{1,2})?|[a-z]{3})(/[0-9]{1,3})?";
    let formed = format!(
        "((CRON_)?TZ=[A-Z][a-z]{{2}}(/[A-Z][a-z]{{3}})? )?{field} {field} {field}(,{field})? {field} {field}"
    );
    let text = |regex: &str| proptest::string::string_regex(regex).unwrap();
    let strategy = prop_oneof![text(few), text(&formed), any::<String>()];
    proptest!(|(text in strategy)| {
        if let Ok(schedule) = Schedule::parse(&text) {
            let now = at("2026-01-01T00:00:00Z");
            prop_assert!(schedule.next(now).is_none_or(|next| next > now));
            let start = at("2020-01-01T00:00:00Z");
            prop_assert!(schedule.latest(start, now).is_none_or(|latest| start < latest && latest <= now));
        }
    });
}

/// JOBS-48 and more: rows that were computed elsewhere; the head of the file says how.
#[test]
fn times_are_those_that_another_program_computed() {
    let rows: Vec<&str> =
        include_str!("schedules.tsv").lines().filter(|line| !line.starts_with('#')).collect();
    assert!(rows.len() >= 300, "{} rows", rows.len());
    for row in rows {
        let [schedule, zone, from, expected] = row.split('\t').collect::<Vec<_>>().try_into().unwrap();
        let parsed = Schedule::parse(schedule).unwrap().in_zone(time_zone(zone).unwrap());
        let (start, mut now) = (at(from), at(from));
        let mut found = Vec::new();
        for _ in 0..5 {
            let Some(next) = parsed.next(now) else {
                found.push("never".to_owned());
                break;
            };
            // The same from all sides.
            assert_eq!(parsed.upcoming(start, now), Some(next), "{row}");
            assert_eq!(parsed.latest(start, next), Some(next), "{row}");
            if let Ok(before) = next.checked_sub(jiff::SignedDuration::from_secs(1)) {
                assert_eq!(parsed.latest(start, before), Some(now).filter(|now| *now > start), "{row}");
            }
            found.push(next.to_string());
            now = next;
        }
        assert_eq!(found.join(" "), expected, "{row}");
    }
}

/// Three months of missed minutes are not looked at one by one, and neither are three thousand years.
#[test]
fn the_latest_time_is_found_from_the_end() {
    let minutely = Schedule::parse("* * * * *").unwrap();
    assert_eq!(
        minutely.latest(at("0001-01-01T00:00:00Z"), at("2026-03-01T00:00:30Z")),
        Some(at("2026-03-01T00:00:00Z"))
    );
    let every = Schedule::parse("@every 1s").unwrap();
    assert_eq!(
        every.latest(at("0001-01-01T00:00:00Z"), at("2026-03-01T00:00:30Z")),
        Some(at("2026-03-01T00:00:30Z"))
    );
    // A clock that was set back brings nothing twice.
    assert_eq!(minutely.latest(at("2026-03-01T01:00:00Z"), at("2026-03-01T00:00:30Z")), None);
    assert_eq!(every.latest(at("2026-03-01T01:00:00Z"), at("2026-03-01T00:00:30Z")), None);
    assert_eq!(
        every.upcoming(at("2026-03-01T01:00:00Z"), at("2026-03-01T00:00:30Z")),
        Some(at("2026-03-01T01:00:01Z"))
    );
}

proptest! {
    #[test]
    fn the_latest_time_is_the_last_of_those_that_come_one_after_the_other(
        minute in "(\\*|\\*/7|[0-5]|3-50/9)", hour in "(\\*|[0-3]|\\*/5)", weekday in "(\\*|1|\\*/3)",
        start in 1_700_000_000..1_900_000_000i64, length in 0..400_000i64,
        zone in prop::sample::select(vec!["UTC", "Europe/Berlin", "America/Sao_Paulo", "Australia/Lord_Howe"]),
    ) {
        let schedule = Schedule::parse(&format!("{minute} {hour} * * {weekday}")).unwrap();
        let schedule = schedule.in_zone(time_zone(zone).unwrap());
        let (start, now) =
            (Timestamp::from_second(start).unwrap(), Timestamp::from_second(start + length).unwrap());
        let times = std::iter::successors(schedule.next(start), |time| schedule.next(*time));
        prop_assert_eq!(schedule.latest(start, now), times.take_while(|time| *time <= now).last());
    }
}
