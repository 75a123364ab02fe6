//! What belongs to the OP stack's module alone.

use crate::host::{HostDb, HostError};
use crate::machine::Machine;
use crate::revm::{
    context::{BlockEnv, CfgEnv, Context, Journal, TxEnv},
    context_interface::{
        Block, JournalTr,
        journaled_state::account::JournaledAccountTr,
        result::{EVMError, ExecutionResult, InvalidTransaction, ResultGas},
    },
    database_interface::Database,
    handler::{EvmTr, FrameResult, Handler, post_execution},
    interpreter::InitialAndFloorGas,
    precompile::Precompiles,
    primitives::{Address, B256, U256},
    state::{AccountInfo, Bytecode, EvmState},
};
use op_revm::{
    constants::{L1_BLOCK_CONTRACT, L1_SCALAR_SLOT},
    L1BlockInfo, OpHaltReason, OpSpecId, OpTransaction, OpTransactionError, handler::OpHandler, precompiles::OpPrecompiles,
    transaction::deposit::DEPOSIT_TRANSACTION_TYPE,
};
pub use crate::revm::primitives::hardfork::SpecId;

pub type Spec = OpSpecId;
pub type Chain = L1BlockInfo;
pub type Ctx = Context<BlockEnv, OpTransaction<TxEnv>, CfgEnv<Spec>, HostDb, Journal<HostDb>, Chain>;
pub type Failure = EVMError<HostError, OpTransactionError>;
pub type Outcome = ExecutionResult<OpHaltReason>;
type Frame = <Machine as EvmTr>::Frame;

/// The forks in the order of the host's list.
pub const SPECS: [Spec; 10] = [
    Spec::BEDROCK, Spec::REGOLITH, Spec::CANYON, Spec::ECOTONE, Spec::FJORD, Spec::GRANITE, Spec::HOLOCENE, Spec::ISTHMUS, Spec::JOVIAN, Spec::KARST,
];

pub fn standard_precompiles(spec: Spec) -> &'static Precompiles {
    OpPrecompiles::new_with_spec(spec).precompiles()
}

pub fn new_context(spec: Spec) -> Ctx {
    Context::new(HostDb::default(), spec)
}

pub fn set_transaction(context: &mut Ctx, request: crate::request::Request) {
    context.tx = OpTransaction { base: request.base, enveloped_tx: request.raw, deposit: Default::default() };
    if let Some(deposit) = request.deposit {
        context.tx.base.tx_type = DEPOSIT_TRANSACTION_TYPE;
        context.tx.deposit.source_hash = B256::repeat_byte(1);
        context.tx.deposit.mint = Some(deposit.mint);
        context.tx.deposit.is_system_transaction = deposit.is_system;
    }
}

/// The state with the writes of this block. op-revm reads the L1 attributes below the journal, where they are those of the parent.
struct JournalDb<'a> {
    state: &'a EvmState,
    below: &'a mut HostDb,
}

impl Database for JournalDb<'_> {
    type Error = HostError;
    fn basic(&mut self, _: Address) -> Result<Option<AccountInfo>, HostError> {
        Ok(None)
    }
    fn code_by_hash(&mut self, hash: B256) -> Result<Bytecode, HostError> {
        self.below.code_by_hash(hash)
    }
    fn storage(&mut self, address: Address, slot: U256) -> Result<U256, HostError> {
        match self.state.get(&address) {
            Some(account) => match account.storage.get(&slot) {
                Some(slot) => Ok(slot.present_value),
                None if account.is_created() => Ok(U256::ZERO),
                None => self.below.storage(address, slot),
            },
            None => self.below.storage(address, slot),
        }
    }
    fn block_hash(&mut self, number: u64) -> Result<B256, HostError> {
        self.below.block_hash(number)
    }
}

/// op-revm's handler, without its checks. A call without raw bytes pays none of the OP stack's fees.
#[derive(Debug, Default)]
pub struct OwnHandler {
    pub charge: U256,
    pub is_free: bool,
    op: OpHandler<Machine, Failure, Frame>,
}

impl OwnHandler {
    pub fn new(charge: U256, is_free: bool) -> Self {
        Self { charge, is_free, ..Default::default() }
    }
}

fn is_deposit(machine: &Machine) -> bool {
    machine.evm.ctx.tx.base.tx_type == DEPOSIT_TRANSACTION_TYPE
}

fn has_fees(machine: &Machine) -> bool {
    is_deposit(machine) || machine.evm.ctx.tx.enveloped_tx.is_some()
}

impl Handler for OwnHandler {
    type Evm = Machine;
    type Error = Failure;
    type HaltReason = OpHaltReason;

    fn validate_env(&self, _: &mut Machine) -> Result<(), Failure> {
        Ok(())
    }

    fn validate_against_state_and_deduct_caller(&self, machine: &mut Machine, gas: &mut InitialAndFloorGas) -> Result<(), Failure> {
        if !has_fees(machine) {
            crate::run::charge(&mut machine.evm.ctx, self.charge)?;
            return Ok(());
        }
        if !is_deposit(machine) {
            let context = &mut machine.evm.ctx;
            let (spec, number) = (context.cfg.spec, context.block.number());
            let journal = &mut context.journaled_state;
            let mut state = JournalDb { state: &journal.inner.state, below: &mut journal.database };
            context.chain = L1BlockInfo::try_fetch(&mut state, number, spec)?;
            if context.chain.empty_ecotone_scalars {
                // Ecotone's first block uses Bedrock's fee. op-revm does not read its scalar.
                context.chain.l1_base_fee_scalar = state.storage(L1_BLOCK_CONTRACT, L1_SCALAR_SLOT)?;
            }
        }
        self.op.validate_against_state_and_deduct_caller(machine, gas)?;
        if is_deposit(machine) {
            let context = &mut machine.evm.ctx;
            let (caller, value) = (context.tx.base.caller, context.tx.base.value);
            let balance = *context.journaled_state.load_account_mut(caller)?.data.balance();
            if balance < value {
                // op-geth does not start such a deposit. op-revm would revert it and return its gas.
                return Err(InvalidTransaction::LackOfFundForMaxFee { fee: Box::new(value), balance: Box::new(balance) }.into());
            }
        }
        Ok(())
    }

    fn last_frame_result(&mut self, machine: &mut Machine, result: &mut FrameResult) -> Result<(), Failure> {
        self.op.last_frame_result(machine, result)
    }

    fn reimburse_caller(&self, machine: &mut Machine, result: &mut FrameResult) -> Result<(), Failure> {
        if has_fees(machine) {
            return self.op.reimburse_caller(machine, result);
        }
        post_execution::reimburse_caller(&mut machine.evm.ctx, result.gas(), U256::ZERO).map_err(Failure::from)
    }

    fn refund(&self, machine: &mut Machine, result: &mut FrameResult, authorizations: i64) {
        self.op.refund(machine, result, authorizations)
    }

    fn reward_beneficiary(&self, machine: &mut Machine, result: &mut FrameResult) -> Result<(), Failure> {
        if has_fees(machine) {
            return self.op.reward_beneficiary(machine, result);
        }
        if self.is_free { Ok(()) } else { self.op.mainnet.reward_beneficiary(machine, result) }
    }

    fn execution_result(&mut self, machine: &mut Machine, result: FrameResult, gas: ResultGas) -> Result<Outcome, Failure> {
        crate::run::before_commit(machine);
        self.op.execution_result(machine, result, gas)
    }

    fn catch_error(&self, machine: &mut Machine, error: Failure) -> Result<Outcome, Failure> {
        self.op.catch_error(machine, error)
    }
}

pub fn run(machine: &mut Machine, handler: &mut OwnHandler) -> Result<Outcome, Failure> {
    handler.run(machine)
}

pub fn run_system_call(machine: &mut Machine) -> Result<Outcome, Failure> {
    OwnHandler::default().run_system_call(machine)
}

pub fn is_failed_deposit(reason: &OpHaltReason) -> bool {
    matches!(reason, OpHaltReason::FailedDeposit)
}

/// No fork of the OP stack has EIP-8037.
pub fn state_gas(_: &ResultGas) -> u64 {
    0
}
