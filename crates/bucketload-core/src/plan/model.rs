//! The questions that every workload model answers, and what follows from the list of models.

use super::{ArrivalLaw, Plan};
use crate::generate::LawError;

/// Properties of a workload model known before the run starts.
pub trait Model {
    /// Maximum number of sessions, over all agents.
    fn max_sessions(&self) -> u32;

    /// Maximum number of operations in flight, over all agents, if arrivals do not wait for the store; `None`
    /// for closed loops.
    fn open_cap(&self) -> Option<u32> {
        None
    }

    /// The arrival process and the mean number of operations per arrival; `None` if the plan has no such
    /// process.
    fn arrivals(&self) -> Option<(&ArrivalLaw, f64)> {
        None
    }

    /// Whether the work ends even without a limit on its phase.
    fn ends_by_itself(&self) -> bool {
        false
    }

    /// Whether operations in flight are given up as soon as the run is asked to end: each takes so long that nobody
    /// waits for it, and what an early end leaves is of no use.
    fn is_cut_short(&self) -> bool {
        false
    }

    /// Whether each operation is drawn by its sequence number from a mix that the workload may choose freely.
    fn has_any_mix(&self) -> bool {
        false
    }

    /// Whether object names are derived from object indices.
    fn has_indexed_names(&self) -> bool {
        true
    }

    /// Passes to `put` the values that identify the operations of work number `work` of phase number `phase`
    /// ([`crate::generate::fingerprint`]).
    ///
    /// # Errors
    /// If the work's operations cannot be generated.
    fn fingerprint(
        &self,
        plan: &Plan,
        at: (usize, usize),
        put: &mut dyn FnMut(u64),
    ) -> Result<(), LawError>;
}

/// From the list of models (`models/list.rs`): the modules with their plans, [`ModelPlan`](super::ModelPlan), access to
/// the selected plan, and the macros by which other crates declare their files and implement their own traits. `$d` is a
/// dollar sign, for those macros.
macro_rules! models {
    ($d:tt $($(#[$doc:meta])+ $name:ident: $variant:ident($plan:ident),)+) => {
        $(
            $(#[$doc])+
            pub mod $name {
                mod plan;

                pub use self::plan::*;
            }

            pub use self::$name::$plan;
        )+

        /// Declares the file of this name in the folder of each model.
        #[macro_export]
        macro_rules! model_files {
            ($d file:ident) => {
                $(
                    mod $name {
                        mod $d file;
                    }
                )+
            };
        }

        /// When operations are due: the workload model of a work.
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "kebab-case", tag = "kind")]
        pub enum ModelPlan {
            $($(#[$doc])+ $variant($plan),)+
        }

        /// The plan of the selected model, as the trait object that the surrounding function returns.
        #[macro_export]
        macro_rules! selected_model {
            ($d model:expr) => {
                match $d model {
                    $($crate::plan::ModelPlan::$variant(plan) => plan,)+
                }
            };
        }

        impl std::ops::Deref for ModelPlan {
            type Target = dyn $crate::plan::Model;

            fn deref(&self) -> &Self::Target {
                selected_model!(self)
            }
        }

        impl ModelPlan {
            $(
                #[doc = concat!("The [`", stringify!($plan), "`], if it is one.")]
                #[must_use]
                pub const fn $name(&self) -> Option<&$plan> {
                    match self {
                        Self::$variant(plan) => Some(plan),
                        _ => None,
                    }
                }
            )+

            /// The plan, to be changed, if it is a `P`.
            pub fn get_mut<P: $crate::plan::Model + 'static>(&mut self) -> Option<&mut P> {
                let plan: &mut dyn std::any::Any = selected_model!(self);
                plan.downcast_mut()
            }
        }

        $(
            impl From<$plan> for ModelPlan {
                fn from(plan: $plan) -> Self {
                    Self::$variant(plan)
                }
            }
        )+
    };
}

pub(crate) use models;
