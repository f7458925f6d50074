//! Whose machine a call goes to, and which part of it.
//!
//! A budget is kept for somebody else's machine, so every spelling of one machine must end at one
//! key: a spelling that is missed is a second, free budget. [`locate`] reads a URL once and gives
//! both the key and the URL to dial, so that what is dialled is always what was keyed.
//! [`ClassRules`] then tells which part of the target is meant, and [`Origin::group`] which
//! neighbours share it. When a text cannot be read the answer is a [`Rejection`], never a guess.

mod class;
mod group;
mod key;
mod mask;
mod normalize;
mod origin;
mod path;
mod query;
mod rules;
mod template;

#[cfg(test)]
mod tests;

pub use class::{Class, ClassNameError};
pub use group::registrable_domain;
pub use key::{TargetKey, TargetKeyError};
pub use mask::masked_path;
pub use normalize::{Credentials, Located, MAX_URL_BYTES, Rejection, RejectionReason, locate};
pub use origin::{Origin, OriginError, Scheme};
pub use query::QueryCondition;
pub use rules::{ClassRule, ClassRules, RuleConflict, RuleRef};
pub use template::{Template, TemplateError};
