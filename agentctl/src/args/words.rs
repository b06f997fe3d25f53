//! The protocol's words as they are typed. The protocol's own enums know nothing of command lines.

use clap::ValueEnum;
use protocol::approval::Scope;
use protocol::session::Mode;

/// The modes as they are typed.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ModeName {
    Plan,
    Ask,
    AcceptEdits,
    Auto,
    Bypass,
}

impl From<ModeName> for Mode {
    fn from(name: ModeName) -> Self {
        match name {
            ModeName::Plan => Self::Plan,
            ModeName::Ask => Self::Ask,
            ModeName::AcceptEdits => Self::AcceptEdits,
            ModeName::Auto => Self::Auto,
            ModeName::Bypass => Self::Bypass,
        }
    }
}

/// The scopes as they are typed.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ScopeName {
    Once,
    Session,
    Project,
    User,
}

impl From<ScopeName> for Scope {
    fn from(name: ScopeName) -> Self {
        match name {
            ScopeName::Once => Self::Once,
            ScopeName::Session => Self::Session,
            ScopeName::Project => Self::Project,
            ScopeName::User => Self::User,
        }
    }
}

/// What can be waited for, as it is typed.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum UntilName {
    Ended,
    Idle,
    Approval,
}

impl From<UntilName> for protocol::api::Until {
    fn from(name: UntilName) -> Self {
        match name {
            UntilName::Ended => Self::Ended,
            UntilName::Idle => Self::Idle,
            UntilName::Approval => Self::Approval,
        }
    }
}
