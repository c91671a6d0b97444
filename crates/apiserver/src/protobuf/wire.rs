//! The wire format itself: numbers, lengths and keys.

/// How a value stands on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Payload<'b> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'b [u8]),
}

/// A key and what follows it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part<'b> {
    pub(super) number: u32,
    pub(super) payload: Payload<'b>,
}

const CUT: &str = "unexpected EOF";
const OVERFLOW: &str = "proto: integer overflow";
const NEGATIVE: &str = "proto: negative length found during unmarshaling";
const END_OF_GROUP: &str = "proto: unexpected end of group";

/// Bytes that are read from the front.
#[derive(Debug, Clone, Copy)]
pub(super) struct Forward<'b> {
    rest: &'b [u8],
}

impl<'b> Forward<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    fn take(&mut self, count: usize) -> Result<&'b [u8], String> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(CUT)?;
        self.rest = rest;
        Ok(taken)
    }

    pub(super) fn varint(&mut self) -> Result<u64, String> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.rest.split_first().ok_or(CUT)?;
            self.rest = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(OVERFLOW.to_owned())
    }

    fn length_delimited(&mut self) -> Result<&'b [u8], String> {
        let length = i64::try_from(self.varint()?).map_err(|_| NEGATIVE)?;
        self.take(usize::try_from(length).map_err(|_| CUT)?)
    }

    /// The next field, whatever it is. Groups and 32-bit values, which no message here has, are passed over; then the
    /// answer is `None`. `owner` is the message, for errors.
    pub(super) fn part(&mut self, owner: &str) -> Result<Option<Part<'b>>, String> {
        let key = self.varint()?;
        let (number, wire) = (u32::try_from(key >> 3 & 0xffff_ffff).unwrap_or_default(), key & 7);
        if wire == 4 {
            return Err(format!("proto: {owner}: wiretype end group for non-group"));
        }
        if number.cast_signed() <= 0 {
            return Err(format!("proto: {owner}: illegal tag {} (wire type {key})", number.cast_signed()));
        }
        let payload = match wire {
            0 => Payload::Varint(self.varint()?),
            1 => Payload::Fixed64(self.fixed64()?),
            2 => Payload::Bytes(self.length_delimited()?),
            _ => {
                self.skip(wire)?;
                return Ok(None);
            }
        };
        Ok(Some(Part { number, payload }))
    }

    fn fixed64(&mut self) -> Result<u64, String> {
        let bytes = self.take(8)?;
        Ok(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// Passes over a group or a 32-bit value. Groups may nest; that takes no stack.
    fn skip(&mut self, wire: u64) -> Result<(), String> {
        let mut open = 0_usize;
        let mut wire = wire;
        loop {
            match wire {
                0 => self.varint().map(drop)?,
                1 => self.take(8).map(drop)?,
                2 => self.length_delimited().map(drop)?,
                3 => open += 1,
                4 => open = open.checked_sub(1).ok_or(END_OF_GROUP)?,
                5 => self.take(4).map(drop)?,
                other => return Err(format!("proto: illegal wireType {other}")),
            }
            if open == 0 {
                return Ok(());
            }
            wire = self.varint()? & 7;
        }
    }
}

/// Bytes that are written from the end: a message is complete before its length must be known.
#[derive(Debug, Default)]
pub(super) struct Backward {
    reversed: Vec<u8>,
}

impl Backward {
    pub(super) fn len(&self) -> usize {
        self.reversed.len()
    }

    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.reversed.extend(bytes.iter().rev());
    }

    fn number(&mut self, mut number: u64) {
        let mut bytes = [0_u8; 10];
        let mut count = 0;
        for byte in &mut bytes {
            count += 1;
            // The mask leaves seven bits.
            let low = u8::try_from(number & 0x7f).unwrap_or_default();
            number >>= 7;
            *byte = if number == 0 { low } else { low | 0x80 };
            if number == 0 {
                break;
            }
        }
        self.raw(bytes.get(..count).unwrap_or_default());
    }

    pub(super) fn varint(&mut self, field: u32, number: u64) {
        self.number(number);
        self.number(u64::from(field) << 3);
    }

    pub(super) fn fixed64(&mut self, field: u32, number: u64) {
        self.raw(&number.to_le_bytes());
        self.number(u64::from(field) << 3 | 1);
    }

    pub(super) fn bytes(&mut self, field: u32, bytes: &[u8]) {
        let start = self.len();
        self.raw(bytes);
        self.close(field, start);
    }

    /// Makes what was written since `start` one field.
    pub(super) fn close(&mut self, field: u32, start: usize) {
        self.number(self.len().saturating_sub(start) as u64);
        self.number(u64::from(field) << 3 | 2);
    }

    pub(super) fn nested<E>(
        &mut self,
        field: u32,
        content: impl FnOnce(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        let start = self.len();
        content(self)?;
        self.close(field, start);
        Ok(())
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        self.reversed.reverse();
        self.reversed
    }
}
