//! What belongs to Ethereum's module alone.

use crate::host::{HostDb, HostError};
use crate::machine::Machine;
use crate::request::{Request, flags};
use crate::revm::{
    context::{BlockEnv, CfgEnv, Context, Journal, TxEnv},
    context_interface::{
        JournalTr,
        result::{EVMError, ExecutionResult, HaltReason, InvalidTransaction, ResultGas},
    },
    handler::{FrameResult, Handler, MainnetHandler},
    interpreter::{InitialAndFloorGas, InstructionResult},
    precompile::{PrecompileSpecId, Precompiles},
    primitives::U256,
};
pub use crate::revm::primitives::hardfork::SpecId;

pub type Spec = SpecId;
pub type Chain = ();
pub type Ctx = Context<BlockEnv, TxEnv, CfgEnv<Spec>, HostDb, Journal<HostDb>, Chain>;
pub type Failure = EVMError<HostError, InvalidTransaction>;
pub type Outcome = ExecutionResult<HaltReason>;

/// The forks in the order of the host's list.
pub const SPECS: [Spec; 16] = [
    Spec::FRONTIER, Spec::HOMESTEAD, Spec::TANGERINE, Spec::SPURIOUS_DRAGON, Spec::BYZANTIUM, Spec::PETERSBURG, Spec::PETERSBURG, Spec::ISTANBUL,
    Spec::BERLIN, Spec::LONDON, Spec::MERGE, Spec::SHANGHAI, Spec::CANCUN, Spec::PRAGUE, Spec::OSAKA, Spec::AMSTERDAM,
];

pub fn standard_precompiles(spec: Spec) -> &'static Precompiles {
    Precompiles::new(PrecompileSpecId::from_spec_id(spec))
}

pub fn new_context(spec: Spec) -> Ctx {
    Context::new(HostDb::default(), spec)
}

/// EIP-7825. From Amsterdam on, it is the cap of execution alone (EIP-8037).
const MAX_EXECUTION_GAS: u64 = 1 << 24;

pub fn set_transaction(context: &mut Ctx, request: Request) {
    let cap = if request.has(flags::CAPS_EXECUTION) { MAX_EXECUTION_GAS } else { u64::MAX };
    context.cfg.tx_gas_limit_cap = Some(cap);
    context.tx = request.base;
}

/// revm's handler, without its checks: the host checks as geth does. The host also says what the sender pays before the run.
#[derive(Debug, Default)]
pub struct OwnHandler {
    pub charge: U256,
    pub is_free: bool,
    mainnet: MainnetHandler<Machine, Failure, <Machine as crate::revm::handler::EvmTr>::Frame>,
}

impl OwnHandler {
    pub fn new(charge: U256, is_free: bool) -> Self {
        Self { charge, is_free, ..Default::default() }
    }
}

impl Handler for OwnHandler {
    type Evm = Machine;
    type Error = Failure;
    type HaltReason = HaltReason;

    fn validate_env(&self, _: &mut Machine) -> Result<(), Failure> {
        Ok(())
    }

    fn validate_against_state_and_deduct_caller(&self, machine: &mut Machine, _: &mut InitialAndFloorGas) -> Result<(), Failure> {
        let context = &mut machine.evm.ctx;
        crate::run::charge(context, self.charge)?;
        // revm derives the address of a creation from it.
        context.tx.nonce = context.journaled_state.load_account(context.tx.caller)?.data.info.nonce;
        Ok(())
    }

    fn reward_beneficiary(&self, machine: &mut Machine, result: &mut FrameResult) -> Result<(), Failure> {
        if self.is_free { Ok(()) } else { self.mainnet.reward_beneficiary(machine, result) }
    }

    fn execution_result(&mut self, machine: &mut Machine, result: FrameResult, gas: ResultGas) -> Result<Outcome, Failure> {
        crate::run::before_commit(machine);
        self.mainnet.execution_result(machine, result, gas)
    }
}

pub fn run(machine: &mut Machine, handler: &mut OwnHandler) -> Result<Outcome, Failure> {
    // A transaction that halts before its first frame has no other result (EIP-2780).
    machine.result = InstructionResult::OutOfGas;
    handler.run(machine)
}

pub fn run_system_call(machine: &mut Machine) -> Result<Outcome, Failure> {
    OwnHandler::default().run_system_call(machine)
}

/// Gas for the growth of the state (EIP-8037).
pub fn state_gas(gas: &ResultGas) -> u64 {
    gas.state_gas_spent_final()
}

pub fn is_failed_deposit(_: &HaltReason) -> bool {
    false
}
