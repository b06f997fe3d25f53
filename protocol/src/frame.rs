//! Newline-delimited JSON: bytes in, lines out, with a limit. No I/O.
//!
//! Both ends of the socket use it. A line longer than the limit is dropped byte by byte as it comes, so memory stays
//! bounded, and the reader is back in step at the next newline.

/// The longest line that the daemon accepts, without its newline.
pub const MAX_FRAME_BYTES: usize = 16 << 20;

/// What came out of the bytes.
#[derive(PartialEq, Eq, Debug)]
pub enum Frame {
    /// One line without its newline and without a `\r` before it. Blank lines never come out.
    Line(Vec<u8>),
    /// A line was longer than the limit and has been dropped.
    TooLong,
}

/// Cuts a byte stream into lines.
#[derive(Debug)]
pub struct LineCutter {
    buffer: Vec<u8>,
    /// How much of `buffer` is known to hold no newline.
    scanned: usize,
    max_bytes: usize,
    skipping: bool,
}

impl LineCutter {
    /// `max_bytes` is the longest line, without its newline.
    #[must_use]
    pub fn new(max_bytes: usize) -> Self {
        Self { buffer: Vec::new(), scanned: 0, max_bytes, skipping: false }
    }

    /// Where to read more bytes into: append to it, then call [`LineCutter::next_frame`] until it gives `None`.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// The next whole line, or `None` until more bytes are there.
    pub fn next_frame(&mut self) -> Option<Frame> {
        loop {
            let Some(found) = memchr::memchr(b'\n', &self.buffer[self.scanned..]) else {
                self.scanned = self.buffer.len();
                self.skipping |= self.buffer.len() > self.max_bytes.saturating_add(1);
                if self.skipping {
                    self.buffer.clear();
                    self.scanned = 0;
                }
                if self.buffer.is_empty() {
                    self.buffer = Vec::new(); // an idle connection holds no buffer
                }
                return None;
            };
            let rest = self.buffer.split_off(self.scanned + found + 1);
            let mut line = std::mem::replace(&mut self.buffer, rest);
            self.scanned = 0;
            line.pop();
            if let Some(frame) = self.finish(line) {
                return Some(frame);
            }
        }
    }

    /// True from the moment the line that is coming in is known to be too long, long before its end.
    #[must_use]
    pub fn is_skipping(&self) -> bool {
        self.skipping
    }

    /// What is left when the stream has ended: a last line without a newline counts.
    pub fn last_frame(&mut self) -> Option<Frame> {
        let line = std::mem::take(&mut self.buffer);
        self.scanned = 0;
        self.finish(line)
    }

    fn finish(&mut self, mut line: Vec<u8>) -> Option<Frame> {
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        if std::mem::take(&mut self.skipping) || line.len() > self.max_bytes {
            return Some(Frame::TooLong);
        }
        let is_blank = line.iter().all(u8::is_ascii_whitespace);
        (!is_blank).then_some(Frame::Line(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(input: &[u8], chunk: usize, max: usize) -> Vec<Frame> {
        let mut cutter = LineCutter::new(max);
        let mut frames = Vec::new();
        for piece in input.chunks(chunk) {
            cutter.buffer().extend_from_slice(piece);
            frames.extend(std::iter::from_fn(|| cutter.next_frame()));
        }
        frames.extend(cutter.last_frame());
        frames
    }

    #[test]
    fn frames_do_not_depend_on_how_the_bytes_are_cut() {
        let input = b"{\"a\":1}\n\n  \r\n[2]\r\n0123456789abcdef\nlast";
        let whole = frames(input, input.len(), 10);
        assert_eq!(
            whole,
            vec![
                Frame::Line(b"{\"a\":1}".to_vec()),
                Frame::Line(b"[2]".to_vec()),
                Frame::TooLong,
                Frame::Line(b"last".to_vec())
            ]
        );
        for chunk in 1..input.len() {
            assert_eq!(frames(input, chunk, 10), whole, "in pieces of {chunk}");
        }
    }

    #[test]
    fn a_line_at_the_limit_passes_and_one_byte_more_does_not() {
        assert_eq!(frames(b"0123456789\r\n", 3, 10), vec![Frame::Line(b"0123456789".to_vec())]);
        assert_eq!(frames(b"0123456789a\n", 3, 10), vec![Frame::TooLong]);
    }

    #[test]
    fn memory_stays_bounded_while_an_endless_line_comes_in() {
        let mut cutter = LineCutter::new(1024);
        for _ in 0..1000 {
            cutter.buffer().extend_from_slice(&[b'x'; 1000]);
            assert_eq!(cutter.next_frame(), None);
            assert!(cutter.buffer().capacity() <= 4096);
        }
    }
}
