//! The wire format of Protocol Buffers, as far as a trace needs it: whole numbers, doubles, texts, and messages within
//! messages. Its definition is <https://protobuf.dev/programming-guides/encoding/>.

/// The field is a whole number of variable length.
const VARINT: u64 = 0;
/// The field is 8 bytes, the lowest first.
const FIXED64: u64 = 1;
/// The field is bytes, after their number.
const BYTES: u64 = 2;

/// A message that is being put together.
#[derive(Clone, Debug, Default)]
pub(super) struct Message {
    bytes: Vec<u8>,
}

impl Message {
    /// The message as it is written.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Takes out all fields. The memory is kept for the next message.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
    }

    /// A field of type `uint32`, `uint64`, `bool` or of an enumeration, or one of type `int32` or `int64` whose value
    /// is not negative.
    pub(super) fn whole(&mut self, field: u32, value: u64) {
        self.tag(field, VARINT);
        self.varint(value);
    }

    /// A field of type `int64`: a negative number is written as its two's complement.
    pub(super) fn signed(&mut self, field: u32, value: i64) {
        self.whole(field, value as u64);
    }

    /// A field of type `double`.
    pub(super) fn double(&mut self, field: u32, value: f64) {
        self.tag(field, FIXED64);
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// A field of type `string`.
    pub(super) fn text(&mut self, field: u32, value: &str) {
        self.piece(field, value.as_bytes());
    }

    /// A field that is a message itself.
    pub(super) fn message(&mut self, field: u32, value: &Message) {
        self.piece(field, &value.bytes);
    }

    fn piece(&mut self, field: u32, bytes: &[u8]) {
        self.tag(field, BYTES);
        self.varint(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    fn tag(&mut self, field: u32, wire_type: u64) {
        self.varint(u64::from(field) << 3 | wire_type);
    }

    /// Seven bits a byte, the lowest first; the eighth bit says that more follow.
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the format's definition, and the ends of the ranges.
    #[test]
    fn fields_are_written_as_the_format_defines_them() {
        let bytes = |write: fn(&mut Message)| {
            let mut message = Message::default();
            write(&mut message);
            message.bytes
        };
        assert_eq!(bytes(|message| message.whole(1, 150)), [0x08, 0x96, 0x01]);
        assert_eq!(
            bytes(|message| message.text(2, "testing")),
            *b"\x12\x07testing"
        );
        let inner = |message: &mut Message| {
            let mut inner = Message::default();
            inner.whole(1, 150);
            message.message(3, &inner);
        };
        assert_eq!(bytes(inner), [0x1a, 0x03, 0x08, 0x96, 0x01]);
        assert_eq!(
            bytes(|message| message.signed(1, -2))[1..],
            [0xfe, 255, 255, 255, 255, 255, 255, 255, 255, 1]
        );
        assert_eq!(bytes(|message| message.whole(1, u64::MAX)).len(), 11);
        assert_eq!(bytes(|message| message.whole(1, 0)), [0x08, 0]);
        assert_eq!(
            bytes(|message| message.double(16, 1.0)),
            [0x81, 0x01, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]
        );
    }
}
