//! Precompiles of a fork, at other addresses if a simulation moved them, with the few limits that revm lacks.

use crate::chain::{Ctx, Spec, standard_precompiles};
use crate::revm::{
    context_interface::JournalTr,
    handler::{PrecompileProvider, precompile_output_to_interpreter_result},
    interpreter::{CallInputs, Gas, InstructionResult, InterpreterResult},
    precompile::Precompiles,
    primitives::{Address, Bytes, HashMap, address},
};

const BN254_PAIRING: Address = address!("0000000000000000000000000000000000000008");

#[derive(Debug)]
pub struct MovablePrecompiles {
    pub standard: &'static Precompiles,
    /// The journal lacks the warm addresses of this fork.
    pub is_changed: bool,
    pub moved: HashMap<Address, Option<Address>>,
    /// Largest input of the pairing precompile in bytes, below revm's own limit.
    pub max_pairing_bytes: usize,
    /// revm's word for the failure of the precompile that the transaction called.
    pub fault: Option<String>,
}

impl MovablePrecompiles {
    pub fn new(spec: Spec) -> Self {
        Self { standard: standard_precompiles(spec), is_changed: true, moved: HashMap::default(), max_pairing_bytes: usize::MAX, fault: None }
    }

    fn original(&self, address: Address) -> Option<Address> {
        if self.moved.is_empty() { Some(address) } else { self.moved.get(&address).copied().unwrap_or(Some(address)) }
    }
}

impl PrecompileProvider<Ctx> for MovablePrecompiles {
    type Output = InterpreterResult;

    fn set_spec(&mut self, _: Spec) -> bool {
        core::mem::take(&mut self.is_changed)
    }

    fn run(&mut self, context: &mut Ctx, inputs: &CallInputs) -> Result<Option<InterpreterResult>, String> {
        let Some(original) = self.original(inputs.bytecode_address) else {
            return Ok(None);
        };
        let Some(precompile) = self.standard.get(&original) else {
            return Ok(None);
        };
        if let Err(error) = context.journaled_state.database.check_deadline() {
            context.error = Err(crate::revm::context_interface::context::ContextError::Db(error));
            return Err("late".into());
        }
        let input = inputs.input.as_bytes(context);
        if original == BN254_PAIRING && input.len() > self.max_pairing_bytes {
            self.fault = Some("bn254 invalid pair length".into());
            let mut gas = Gas::new(inputs.gas_limit);
            gas.spend_all();
            return Ok(Some(InterpreterResult { result: InstructionResult::PrecompileError, gas, output: Bytes::new() }));
        }
        let output = precompile.execute(&input, inputs.gas_limit, inputs.reservoir).map_err(|error| error.to_string())?;
        if let Some(reason) = output.halt_reason() {
            if context.journaled_state.depth() == 1 {
                self.fault = Some(reason.to_string());
            }
        }
        drop(input);
        Ok(Some(precompile_output_to_interpreter_result(output, inputs.gas_limit)))
    }

    #[cfg(feature = "ethereum")]
    fn warm_addresses(&self) -> &crate::revm::primitives::AddressSet {
        self.standard.addresses_set()
    }

    #[cfg(feature = "optimism")]
    fn warm_addresses(&self) -> Box<impl Iterator<Item = Address>> {
        Box::new(self.standard.addresses().copied())
    }

    #[cfg(feature = "optimism")]
    fn contains(&self, address: &Address) -> bool {
        self.standard.contains(address)
    }
}
