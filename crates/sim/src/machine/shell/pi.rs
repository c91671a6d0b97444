//! The example of a Job in Kubernetes' documentation: `perl -Mbignum=bpi -wle "print bpi(2000)"`.

/// Digits in one limb.
const LIMB: usize = 9;
const BASE: u64 = 1_000_000_000;
const MOST: usize = 10_000;

/// How many digits a line of Perl asks for, if it does.
pub(super) fn asked(line: &str) -> Option<usize> {
    let (_, rest) = line.split_once("bpi(")?;
    let number = rest.split(')').next()?.trim().parse().ok()?;
    Some(usize::min(number, MOST))
}

/// Pi with this many digits, by Machin's formula.
pub(super) fn digits(count: usize) -> String {
    let count = count.max(1);
    let limbs = count / LIMB + 4;
    let mut sum = inverse_tangent(16, 5, limbs);
    subtract(&mut sum, &inverse_tangent(4, 239, limbs));
    let mut rest = sum.iter();
    let mut text = format!("{}.", rest.next().copied().unwrap_or(3));
    rest.for_each(|limb| text.push_str(&format!("{limb:09}")));
    rounded(&text, count)
}

/// `factor * arctan(1 / of)` with a whole part and limbs behind the point.
fn inverse_tangent(factor: u64, of: u64, limbs: usize) -> Vec<u64> {
    let mut power = vec![0; limbs];
    if let Some(first) = power.first_mut() {
        *first = factor;
    }
    divide(&mut power, of);
    let mut sum = power.clone();
    let (mut n, mut adds) = (1, false);
    loop {
        divide(&mut power, of * of);
        n += 2;
        let mut term = power.clone();
        divide(&mut term, n);
        if term.iter().all(|limb| *limb == 0) {
            return sum;
        }
        if adds {
            add(&mut sum, &term);
        } else {
            subtract(&mut sum, &term);
        }
        adds = !adds;
    }
}

fn divide(number: &mut [u64], by: u64) {
    let mut rest = 0;
    for limb in number {
        let whole = rest * BASE + *limb;
        *limb = whole / by;
        rest = whole % by;
    }
}

fn add(to: &mut [u64], what: &[u64]) {
    let mut carry = 0;
    for (limb, more) in to.iter_mut().zip(what).rev() {
        let whole = *limb + more + carry;
        *limb = whole % BASE;
        carry = whole / BASE;
    }
}

fn subtract(from: &mut [u64], what: &[u64]) {
    let mut borrow = 0;
    for (limb, less) in from.iter_mut().zip(what).rev() {
        let less = less + borrow;
        borrow = u64::from(*limb < less);
        *limb = *limb + borrow * BASE - less;
    }
}

/// The first digits of a number, of which the last one is rounded.
fn rounded(text: &str, count: usize) -> String {
    let mut kept: Vec<u8> = text.bytes().take(count + 1).collect();
    let mut goes_up = text.as_bytes().get(count + 1).is_some_and(|next| *next >= b'5');
    for digit in kept.iter_mut().rev().filter(|digit| digit.is_ascii_digit()) {
        if !goes_up {
            break;
        }
        goes_up = *digit == b'9';
        *digit = if goes_up { b'0' } else { *digit + 1 };
    }
    String::from_utf8(kept).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pi_has_as_many_digits_as_are_asked_for() {
        assert_eq!(asked("print bpi(20)"), Some(20));
        assert_eq!(asked("print 1"), None);
        assert_eq!(digits(20), "3.1415926535897932385");
        let long = digits(2000);
        assert_eq!(long.len(), 2001);
        assert!(
            long.starts_with(
                "3.14159265358979323846264338327950288419716939937510582097494459230781640628620"
            )
        );
        // The thousandth digit behind the point and those before it.
        assert_eq!(long.get(992..1002), Some("2164201989"));
    }
}
