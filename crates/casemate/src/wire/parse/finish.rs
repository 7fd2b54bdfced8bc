//! From the fields that were read to a transition.

use super::{Need, Parser, Watch};
use crate::wire::field::Field;
use crate::wire::record::{Barrier, Kind, Operand, Transition};

impl<W: Watch> Parser<'_, '_, W> {
    #[inline(always)]
    pub(super) fn transition(&self) -> Result<Transition, Need> {
        let number = |field: Field| self.numbers[field as usize];
        let (address, value, size) = (number(Field::Address), number(Field::Value), number(Field::Size));
        Ok(match self.kind {
            Kind::MemWrite => Transition::MemWrite { order: self.order, address, value },
            Kind::MemAtomic => {
                let read = number(Field::Read);
                Transition::MemAtomic { op: self.atomic, order: self.order, address, value, read }
            }
            Kind::MemRead => Transition::MemRead { address, value },
            Kind::MemInit => Transition::MemInit { address, size },
            Kind::MemFree => Transition::MemFree { address, size },
            Kind::MemSet => Transition::MemSet { address, size, value },
            Kind::Barrier => Transition::Barrier(self.finish_barrier()?),
            Kind::Tlbi => {
                let operand = self.finish_operand()?;
                match self.other {
                    None => Transition::Tlbi { op: self.op, operand },
                    Some(name) => Transition::OtherTlbi { name, operand },
                }
            }
            Kind::SysregWrite => match self.other {
                None => Transition::SysregWrite { register: self.register, value },
                Some(name) => Transition::OtherSysreg { name, value },
            },
            Kind::Hint => Transition::Hint { hint: self.hint, location: number(Field::Location), value },
            Kind::Lock => Transition::Lock { address },
            Kind::Unlock => Transition::Unlock { address },
            Kind::Trylock => Transition::Trylock { address },
        })
    }

    fn finish_barrier(&self) -> Result<Barrier, Need> {
        match self.barrier {
            Barrier::Dsb(_) => Ok(Barrier::Dsb(self.domain)),
            Barrier::Isb if self.seen & Field::Kind.bit() != 0 => Err(self.unwanted(Field::Kind, 0)),
            Barrier::Isb => Ok(Barrier::Isb),
        }
    }

    fn finish_operand(&self) -> Result<Operand, Need> {
        let has = |field: Field| self.seen & field.bit() != 0;
        let (has_value, has_older) = (has(Field::Value), has(Field::Addr) || has(Field::Level));
        let is_refused = self.other.is_none() && !self.op.takes_operand();
        if is_refused && (has_value || has_older) || has_value && has_older {
            let field = if has_older { Field::Addr } else { Field::Value };
            return Err(self.unwanted(field, 0));
        }
        let number = |field: Field| self.numbers[field as usize];
        Ok(match (has_value, has_older) {
            (true, _) => Operand::Value(number(Field::Value)),
            (_, true) => Operand::AddressLevel { address: number(Field::Addr), level: number(Field::Level) },
            _ => Operand::None,
        })
    }
}
