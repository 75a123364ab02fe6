//! What belongs to Ethereum's module alone.

use crate::host::{HostDb, HostError};
use crate::machine::Machine;
use crate::revm::{
    context::{BlockEnv, CfgEnv, Context, Journal, TxEnv},
    context_interface::{
        result::{EVMError, ExecutionResult, HaltReason, InvalidTransaction, ResultGas},
    },
    handler::{FrameResult, Handler, MainnetHandler},
    interpreter::InitialAndFloorGas,
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

pub fn set_transaction(context: &mut Ctx, request: crate::request::Request) {
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
        crate::run::charge(&mut machine.evm.ctx, self.charge)?;
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
    handler.run(machine)
}

pub fn run_system_call(machine: &mut Machine) -> Result<Outcome, Failure> {
    OwnHandler::default().run_system_call(machine)
}

pub fn is_failed_deposit(_: &HaltReason) -> bool {
    false
}
