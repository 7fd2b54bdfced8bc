//! State of Direct3D devices.

use super::store::{Key, List};
use super::{Arguments, Place, StateTracker, Verdict};
use crate::lanes::dictionary::Dictionary;
use crate::tools::gl::commands::effects::{Act, Family};

impl StateTracker {
    /// Calls of Direct3D devices: the device is argument 0, and the context.
    pub(super) fn device(&mut self, act: Act, of: &Arguments<'_>, dictionary: &Dictionary) -> Verdict {
        if act == Act::DeviceUnsettle {
            self.floor = self.now;
            return Verdict::Nothing;
        }
        let Some(device) = of.number(0, dictionary).filter(|device| *device != 0) else { return Verdict::Unknown };
        if act == Act::DeviceRelease {
            // It returns the number of remaining references.
            if of.returned(dictionary) == Some(0) {
                self.contexts.destroy((true, device));
            }
            return Verdict::Nothing;
        }
        let Some(at) = self.contexts.of_device(device, self.now) else { return Verdict::Unknown };
        let list = self.contexts.get(at).map_or(List::None, |context| context.list);
        match act {
            Act::BeginStateBlock | Act::EndStateBlock => {
                self.unsettle_all(at);
                if let Some(context) = self.contexts.get_mut(at) {
                    context.list = if act == Act::BeginStateBlock { List::Compiled } else { List::None };
                }
                Verdict::Nothing
            }
            Act::Device(..) if list == List::Compiled => Verdict::Recorded,
            Act::Device(slot, keys) => {
                let mut key = Key::new(Family::Direct3D, slot);
                for argument in 1..=keys {
                    let Some(number) = of.number(argument, dictionary) else {
                        self.unsettle(at, Family::Direct3D);
                        return Verdict::Unknown;
                    };
                    key = key.with(number);
                }
                self.value.clear();
                if !of.push_from(&mut self.value, keys + 1, dictionary) {
                    return self.lose(at, key);
                }
                self.store(at, Place::of(Family::Direct3D, key))
            }
            _ => Verdict::Nothing,
        }
    }
}
