//! A transaction from request to result.

use crate::chain::{self, Ctx, Failure, Outcome, OwnHandler};
use crate::host::HostError;
use crate::instructions::instructions;
use crate::machine::Machine;
use crate::output::Writer;
use crate::reads::Reads;
use crate::request::{Request, flags};
use crate::revm::{
    context_interface::{
        JournalTr, Transaction,
        journaled_state::{account::JournaledAccountTr, entry::JournalEntry},
        result::{EVMError, ExecutionResult, Output, ResultGas},
    },
    primitives::{Bytes, Log, U256, hardfork::SpecId},
};
use crate::states::Dirty;

#[repr(u32)]
#[derive(Clone, Copy)]
pub enum Status {
    Success,
    Revert,
    Halt,
    FailedDeposit,
    /// The host has the error that its reader threw.
    ReaderFailed,
    Late,
    Fault,
}

/// Takes what the sender pays, and counts the nonce of a call. Both wrap as geth's do.
pub fn charge(context: &mut Ctx, charge: U256) -> Result<(), HostError> {
    let (caller, is_call) = (context.tx.caller(), context.tx.kind().is_call());
    let mut account = context.journaled_state.load_account_with_code_mut(caller)?.data;
    let balance = account.balance().wrapping_sub(charge);
    account.set_balance(balance);
    let nonce = account.nonce();
    if is_call {
        account.set_nonce(nonce.wrapping_add(1));
    }
    drop(account);
    let reads = &mut context.journaled_state.database.reads;
    if reads.is_on && !is_call {
        reads.creation(caller.create(nonce));
    }
    Ok(())
}

/// Notes what the transaction wrote, while the journal still has it.
pub fn before_commit(machine: &mut Machine) {
    let journal = &mut machine.evm.ctx.journaled_state;
    let dirty = &mut journal.database.dirty;
    for entry in &journal.inner.journal {
        match entry {
            JournalEntry::StorageChanged { address, key, .. } => {
                dirty.of(*address).slots.insert(*key);
            }
            JournalEntry::CodeChange { address, .. } => dirty.of(*address).has_code = true,
            JournalEntry::AccountCreated { address, .. } => {
                // Its creation precedes its own writes in the journal.
                *dirty.of(*address) = Dirty { is_cleared: true, ..Dirty::default() };
                journal.database.with_storage.remove(address);
            }
            JournalEntry::AccountDestroyed { address, .. } => {
                dirty.of(*address).is_cleared = true;
                dirty.destroyed.push(*address);
            }
            JournalEntry::AccountTouched { address } => dirty.touched.push(*address),
            _ => {}
        }
    }
}

pub fn transact(machine: &mut Machine, request: Request, writer: &mut Writer) {
    let is_traced = request.has(flags::TRACES_TRANSFERS | flags::TRACES_ACCESS);
    let eth_spec: SpecId = machine.evm.ctx.cfg.spec.into();
    if is_traced {
        machine.evm.instruction = instructions(eth_spec, true);
    }
    let trace = &mut machine.evm.ctx.journaled_state.database.trace;
    *trace = Default::default();
    trace.traces_transfers = request.has(flags::TRACES_TRANSFERS);
    begin(machine, &request);
    machine.evm.precompiles.moved = request.moved.clone();
    machine.evm.precompiles.fault = None;
    let mut handler = OwnHandler::new(request.charge, request.has(flags::IS_FREE));
    chain::set_transaction(&mut machine.evm.ctx, request);
    let outcome = chain::run(machine, &mut handler);
    finish(machine, outcome, writer);
    if is_traced {
        machine.evm.instruction = instructions(eth_spec, false);
    }
}

fn begin(machine: &mut Machine, request: &Request) {
    let database = &mut machine.evm.ctx.journaled_state.database;
    database.has_deadline = request.has(flags::HAS_DEADLINE);
    database.reads = Reads::of(request);
    machine.last_step = None;
}

pub fn system_call(machine: &mut Machine, request: Request, writer: &mut Writer) {
    machine.evm.ctx.journaled_state.database.trace = Default::default();
    begin(machine, &request);
    machine.evm.precompiles.moved.clear();
    chain::set_transaction(&mut machine.evm.ctx, request);
    // revm leaves this to the handler's other path.
    let spec: SpecId = machine.evm.ctx.cfg.spec.into();
    machine.evm.ctx.journaled_state.set_spec_id(spec);
    let outcome = chain::run_system_call(machine);
    finish(machine, outcome, writer);
}

fn finish(machine: &mut Machine, outcome: Result<Outcome, Failure>, writer: &mut Writer) {
    let (status, gas, created, data, logs) = match outcome {
        Ok(ExecutionResult::Success { gas, logs, output, .. }) => match output {
            Output::Call(data) => (Status::Success, gas, None, data, logs),
            // The address is missing if the sender's nonce cannot be incremented.
            Output::Create(data, address) => (Status::Success, gas, address, data, logs),
        },
        Ok(ExecutionResult::Revert { gas, output, .. }) => (Status::Revert, gas, None, output, Vec::new()),
        Ok(ExecutionResult::Halt { reason, gas, .. }) => {
            let status = if chain::is_failed_deposit(&reason) { Status::FailedDeposit } else { Status::Halt };
            (status, gas, None, Bytes::new(), Vec::new())
        }
        Err(error) => return fail(machine, error, writer),
    };
    head(machine, writer, status, gas);
    writer.u32(created.is_some().into());
    if let Some(address) = created {
        writer.raw(address.as_slice());
    }
    writer.bytes(&data);
    write_logs(machine, &logs, writer);
    write_access(machine, writer);
    let reads = &machine.evm.ctx.journaled_state.database.reads;
    writer.u32(reads.is_on.into());
    if reads.is_on {
        reads.write(writer);
    }
    if matches!(status, Status::Halt | Status::FailedDeposit) {
        write_step(machine, writer);
    }
}

fn fail(machine: &mut Machine, error: Failure, writer: &mut Writer) {
    machine.evm.ctx.journaled_state.discard_tx();
    machine.evm.ctx.local = Default::default();
    machine.evm.ctx.error = Ok(());
    machine.evm.frame_stack.clear();
    match error {
        EVMError::Database(HostError::Reader) => writer.u32(Status::ReaderFailed as u32),
        EVMError::Database(HostError::Late) => writer.u32(Status::Late as u32),
        other => {
            writer.u32(Status::Fault as u32);
            writer.bytes(format!("{other:?}").as_bytes());
        }
    }
}

/// Gas before the refund is at least the floor, as in geth.
fn head(machine: &Machine, writer: &mut Writer, status: Status, gas: ResultGas) {
    let spent = gas.total_gas_spent();
    writer.u32(status as u32);
    writer.u32(machine.result as u32);
    writer.u64(spent.saturating_sub(gas.inner_refunded()).max(gas.floor_gas()));
    writer.u64(spent.max(gas.floor_gas()));
    writer.u64(chain::state_gas(&gas));
}

fn write_logs(machine: &Machine, logs: &[Log], writer: &mut Writer) {
    let trace = &machine.evm.ctx.journaled_state.database.trace;
    writer.u32(logs.len() as u32);
    for (position, log) in logs.iter().enumerate() {
        // Logs that the protocol itself adds (EIP-7708) are not noted.
        let is_transfer = trace.transfers.get(position).copied().unwrap_or(false);
        writer.raw(log.address.as_slice());
        writer.u32(is_transfer.into());
        writer.u32(log.topics().len() as u32);
        for topic in log.topics() {
            writer.raw(topic.as_slice());
        }
        writer.bytes(&log.data.data);
    }
}

fn write_access(machine: &Machine, writer: &mut Writer) {
    let accessed = &machine.evm.ctx.journaled_state.database.trace.accessed;
    writer.u32(accessed.len() as u32);
    for (address, slot) in accessed {
        writer.raw(address.as_slice());
        writer.u32(slot.is_some().into());
        writer.raw(&slot.unwrap_or_default().to_be_bytes::<32>());
    }
}

fn write_step(machine: &mut Machine, writer: &mut Writer) {
    writer.bytes(machine.evm.precompiles.fault.take().unwrap_or_default().as_bytes());
    let Some(step) = machine.last_step.take() else {
        writer.u32(0);
        return;
    };
    writer.u32(1);
    writer.u32(step.opcode.into());
    writer.u32(step.operand.into());
    writer.u64(step.gas_left);
    writer.u64(step.memory_bytes);
    writer.u64(step.return_bytes);
    writer.bytes(&step.output);
    writer.u32(step.stack_length as u32);
    writer.u32(step.stack.len() as u32);
    for word in step.stack.iter().rev() {
        writer.raw(&word.to_be_bytes::<32>());
    }
}
