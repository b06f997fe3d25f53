//! Files before and after: what the tools that write files have in common.
//!
//! A change is made whole in memory, checked, shown to people as a diff, and then written all or nothing. What was
//! written counts as read.

mod commit;

use std::fs::Metadata;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

use foundation::{ErrorCode, FileMark, Plan, ToolError, ToolOutcome, ToolOutput};
use similar::{ChangeTag, TextDiff};
use tokio_util::sync::CancellationToken;

use crate::paths::{Target, open_file};
use crate::text::{self, Kind};
use crate::tools::place::{Place, check_running};
pub(in crate::tools) use commit::exists;

/// As much as is held in memory to change a file.
pub(crate) const MAX_CHANGE_BYTES: u64 = 64 * 1024 * 1024;
const DIFF_TIME: Duration = Duration::from_millis(500);

/// A file as it is.
#[derive(Debug)]
pub(crate) struct Before {
    pub(crate) target: Target,
    pub(crate) shown: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) meta: Metadata,
}

/// A file as it will be.
#[derive(Debug)]
pub(crate) struct After {
    pub(crate) target: Target,
    pub(crate) shown: String,
    pub(crate) bytes: Vec<u8>,
}

/// Edit: both, at one path. Move: both, at two. Create: only after. Delete: only before.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) before: Option<Before>,
    pub(crate) after: Option<After>,
}

/// Checked changes with what people are told of them.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) changes: Vec<Change>,
    /// One line, without the counts of lines.
    pub(crate) summary: String,
    /// Beside those that follow from the files themselves.
    pub(crate) risks: Vec<String>,
}

impl Place {
    /// Loads a file that the session has seen as it is now.
    ///
    /// # Errors
    /// Everything that keeps a file from being changed: `NotFound`, `NotAFile`, `TooLarge`, `NotRead`, `Stale`.
    pub(crate) fn load(&self, target: Target, shown: String) -> Result<Before, ToolError> {
        let before = self.load_unseen(target, shown)?;
        self.files.check_fresh(&before.target.real, &before.shown, &before.bytes)?;
        Ok(before)
    }

    /// As [`Place::load`], and text that can be changed byte for byte.
    pub(crate) fn load_text(&self, target: Target, shown: String) -> Result<Before, ToolError> {
        let before = self.load_unseen(target, shown)?;
        before.check_text()?;
        self.files.check_fresh(&before.target.real, &before.shown, &before.bytes)?;
        Ok(before)
    }

    fn load_unseen(&self, target: Target, shown: String) -> Result<Before, ToolError> {
        let opened = open_file(&target, &shown)?;
        let mut bytes = Vec::new();
        let read = opened.file.take(MAX_CHANGE_BYTES + 1).read_to_end(&mut bytes);
        read.map_err(|error| crate::paths::io_error(&shown, &error))?;
        if bytes.len() as u64 > MAX_CHANGE_BYTES {
            return Err(ToolError::new(
                ErrorCode::TooLarge,
                format!("{shown} is over {} MiB", MAX_CHANGE_BYTES >> 20),
                "Change a file of this size with a command.",
            ));
        }
        Ok(Before { target, shown, bytes, meta: opened.meta })
    }
}

impl Before {
    /// # Errors
    /// `Binary` for what has no text to go by.
    pub(crate) fn check_text(&self) -> Result<(), ToolError> {
        let what = match text::kind(&self.bytes) {
            Kind::Text => return Ok(()),
            Kind::Utf16 { .. } => "UTF-16 text",
            Kind::Binary => "binary",
        };
        Err(ToolError::new(
            ErrorCode::Binary,
            format!("{} is {what}; only UTF-8 and other one-byte text can be changed by its text", self.shown),
            "Use a command that knows the format.",
        ))
    }
}

/// How a tool makes its changes from its input: in memory, checked, nothing written.
pub(crate) type Prepare<I> = fn(&Place, &I) -> Result<Prepared, ToolError>;

impl Place {
    /// What a person must see of a change before saying yes.
    pub(crate) async fn plan_change<I: Send + 'static>(
        &self,
        input: I,
        prepare: Prepare<I>,
    ) -> Result<Plan, ToolError> {
        self.blocking(&CancellationToken::new(), move |place, _| Ok(prepare(place, &input)?.plan())).await
    }

    /// What a change would make of files; nothing for one that cannot be made.
    pub(crate) async fn marks<I: Send + 'static>(
        &self,
        input: Result<I, ToolError>,
        prepare: Prepare<I>,
    ) -> Vec<FileMark> {
        let Ok(input) = input else { return Vec::new() };
        let marks = move |place: &Self, _: &CancellationToken| Ok(prepare(place, &input)?.marks());
        self.blocking(&CancellationToken::new(), marks).await.unwrap_or_default()
    }

    /// Makes a change, alone among the session's changes.
    pub(crate) async fn change<I: Send + 'static>(
        &self,
        input: I,
        prepare: Prepare<I>,
        cancel: &CancellationToken,
    ) -> ToolOutcome {
        let work = move |place: &Self, cancel: &CancellationToken| {
            let _alone = place.files.exclusive();
            let prepared = prepare(place, &input)?;
            check_running(cancel)?;
            prepared.commit(place)
        };
        self.blocking(cancel, work).await
    }
}

impl Prepared {
    /// What a person must see before saying yes.
    pub(crate) fn plan(self) -> Plan {
        let detail = self.diff().text;
        let mut risks = self.risks;
        risks.extend(self.changes.iter().flat_map(Change::risks));
        Plan { detail, risks }
    }

    fn marks(&self) -> Vec<FileMark> {
        let marks: Vec<_> = self.changes.iter().flat_map(Change::marks).collect();
        // A path that cannot be kept as text could be mistaken for another: then nothing is known.
        if marks.iter().all(|mark| mark.path.to_str().is_some()) { marks } else { Vec::new() }
    }

    /// Writes everything or nothing.
    pub(crate) fn commit(self, place: &Place) -> Result<ToolOutput, ToolError> {
        let diff = self.diff();
        commit::commit(&self.changes, &place.files)?;
        let summary = format!("{} (+{} -{})", self.summary, diff.added, diff.removed);
        Ok(ToolOutput { summary, text: String::new(), detail: Some(diff.text), effect: None })
    }

    fn diff(&self) -> Diff {
        let mut whole = Diff::default();
        for change in &self.changes {
            change.diff_into(&mut whole);
        }
        whole
    }
}

/// A unified diff for people.
#[derive(Default, Debug)]
struct Diff {
    text: String,
    added: usize,
    removed: usize,
}

impl Change {
    fn diff_into(&self, whole: &mut Diff) {
        let old =
            self.before.as_ref().map_or(String::new(), |before| String::from_utf8_lossy(&before.bytes).into_owned());
        let new = self.after.as_ref().map_or(String::new(), |after| String::from_utf8_lossy(&after.bytes).into_owned());
        let from = self.before.as_ref().map(|before| before.shown.as_str());
        let to = self.after.as_ref().map(|after| after.shown.as_str());
        if let (Some(from), Some(to)) = (from, to)
            && from != to
        {
            whole.text.push_str(&format!("rename from {from}\nrename to {to}\n"));
        }
        let diff = TextDiff::configure().timeout(DIFF_TIME).diff_lines(&old, &new);
        for change in diff.iter_all_changes() {
            match change.tag() {
                ChangeTag::Insert => whole.added += 1,
                ChangeTag::Delete => whole.removed += 1,
                ChangeTag::Equal => {}
            }
        }
        let header = |path: Option<&str>| path.unwrap_or("/dev/null").to_owned();
        let unified = diff.unified_diff().context_radius(3).header(&header(from), &header(to)).to_string();
        if unified.is_empty() && from != to {
            // An empty file has no lines to show, and yet it comes or goes.
            whole.text.push_str(&format!("--- {}\n+++ {}\n", header(from), header(to)));
        }
        whole.text.push_str(&unified);
    }

    fn marks(&self) -> Vec<FileMark> {
        let (before, after) = (self.before.as_ref(), self.after.as_ref());
        let hash = |bytes: &[u8]| Some(blake3::hash(bytes).to_hex().to_string());
        let old = before.map(|before| FileMark {
            path: before.target.real.clone(),
            before: hash(&before.bytes),
            after: after.filter(|after| after.target.real == before.target.real).and_then(|after| hash(&after.bytes)),
        });
        let new = after.filter(|after| before.is_none_or(|before| before.target.real != after.target.real));
        let new =
            new.map(|after| FileMark { path: after.target.real.clone(), before: None, after: hash(&after.bytes) });
        old.into_iter().chain(new).collect()
    }

    fn risks(&self) -> Vec<String> {
        let before = self.before.as_ref().map(|before| (&before.target, &before.shown));
        let after = self.after.as_ref().map(|after| (&after.target, &after.shown));
        let moved = before.zip(after).is_some_and(|(before, after)| before.0.real != after.0.real);
        let mut risks = Vec::new();
        for (target, shown) in before.into_iter().chain(after.filter(|_| moved || self.before.is_none())) {
            if !target.inside {
                risks.push(format!("outside the workspace: {}", target.real.display()));
            }
            if target.is_linked() {
                risks.push(format!("{shown} leads through a link to {}", target.real.display()));
            }
        }
        if let Some(before) = &self.before
            && before.meta.nlink() > 1
        {
            let others = before.meta.nlink() - 1;
            risks.push(format!(
                "{} has {} more (hard links), which will not change",
                before.shown,
                text::count(others, "name")
            ));
        }
        risks
    }
}
