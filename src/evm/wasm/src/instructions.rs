//! Opcodes with something added: the deadline, a faster hash, kinds of logs, and traces.

use crate::chain::{Ctx, SpecId};
use crate::host::transfer_log;
use crate::revm::{
    context_interface::{Host, JournalTr, context::ContextError},
    handler::instructions::EthInstructions,
    interpreter::{
        Instruction, InstructionContext, InstructionResult,
        instructions::{InstructionTable, host, instruction_table},
        interpreter::{EthInterpreter, resize_memory},
        interpreter_types::{InputsTr, RuntimeFlag, StackTr},
    },
    primitives::{Address, B256, KECCAK_EMPTY, U256},
};

pub type Instructions = EthInstructions<EthInterpreter, Ctx>;
type Context<'a> = InstructionContext<'a, Ctx, EthInterpreter>;
const ORIGINAL: InstructionTable<EthInterpreter, Ctx> = instruction_table();

#[cfg(feature = "ethereum")]
pub type Done = Result<(), InstructionResult>;
#[cfg(feature = "optimism")]
pub type Done = ();

#[cfg(feature = "ethereum")]
macro_rules! halt {
    ($context:expr, $result:expr) => {
        return Err($result)
    };
}
#[cfg(feature = "optimism")]
macro_rules! halt {
    ($context:expr, $result:expr) => {{
        let result = $result;
        if result == InstructionResult::OutOfGas {
            $context.interpreter.gas.spend_all();
        }
        $context.interpreter.halt(result);
        return;
    }};
}
#[cfg(feature = "ethereum")]
macro_rules! done {
    () => {
        Ok(())
    };
}
#[cfg(feature = "optimism")]
macro_rules! done {
    () => {
        ()
    };
}

fn jumpdest(context: Context<'_>) -> Done {
    if let Err(error) = context.host.journaled_state.database.pass() {
        context.host.error = Err(ContextError::Db(error));
        halt!(context, InstructionResult::FatalExternalError);
    }
    done!()
}

fn keccak256(context: Context<'_>) -> Done {
    let Some(([offset], top)) = StackTr::popn_top::<1>(&mut context.interpreter.stack) else {
        halt!(context, InstructionResult::StackUnderflow);
    };
    let Some(length) = size(*top) else {
        halt!(context, InstructionResult::InvalidOperandOOG);
    };
    if !context.interpreter.gas.record_regular_cost(context.host.gas_params().keccak256_cost(length)) {
        halt!(context, InstructionResult::OutOfGas);
    }
    let hash = if length == 0 {
        KECCAK_EMPTY
    } else {
        let Some(from) = size(offset) else {
            halt!(context, InstructionResult::InvalidOperandOOG);
        };
        if let Err(result) = resize_memory(&mut context.interpreter.gas, &mut context.interpreter.memory, context.host.gas_params(), from, length) {
            halt!(context, result);
        }
        B256::new(crate::keccak::keccak256(context.interpreter.memory.slice_len(from, length).as_ref()))
    };
    *top = hash.into();
    done!()
}

fn size(value: U256) -> Option<usize> {
    usize::try_from(value).ok()
}

/// Notes that the log is no transfer.
fn log<const TOPICS: usize>(context: Context<'_>) -> Done {
    let Context { interpreter, host } = context;
    let before = host.journaled_state.inner.logs.len();
    let result = host::log::<TOPICS, Ctx>(Context { interpreter, host });
    if host.journaled_state.inner.logs.len() > before {
        host.journaled_state.database.trace.capture(before, false);
    }
    result
}

/// SELFDESTRUCT moves a balance without a frame.
fn traced_selfdestruct(context: Context<'_>) -> Done {
    let Context { interpreter, host } = context;
    let from = interpreter.input.target_address();
    if let Ok(word) = interpreter.stack.peek(0) {
        let to = Address::from_word(word.into());
        let journal = &mut host.journaled_state;
        if journal.database.trace.traces_transfers && !interpreter.runtime_flag.is_static() {
            let balance = journal.inner.state.get(&from).map(|account| account.info.balance).unwrap_or_default();
            if !balance.is_zero() {
                journal.database.trace.capture(journal.inner.logs.len(), true);
                journal.log(transfer_log(from, to, balance));
            }
        }
        journal.database.trace.accessed.push((to, None));
    }
    host::selfdestruct(Context { interpreter, host })
}

/// Records the address at a position of the stack, as geth's tracer of access lists does.
macro_rules! account_access {
    ($name:ident, $opcode:expr, $position:expr) => {
        fn $name(context: Context<'_>) -> Done {
            if let Ok(word) = context.interpreter.stack.peek($position) {
                context.host.journaled_state.database.trace.accessed.push((Address::from_word(word.into()), None));
            }
            ORIGINAL[$opcode].execute(context)
        }
    };
}
/// Records the slot on top of the stack.
macro_rules! slot_access {
    ($name:ident, $opcode:expr) => {
        fn $name(context: Context<'_>) -> Done {
            if let Ok(slot) = context.interpreter.stack.peek(0) {
                let address = context.interpreter.input.target_address();
                context.host.journaled_state.database.trace.accessed.push((address, Some(slot)));
            }
            ORIGINAL[$opcode].execute(context)
        }
    };
}

account_access!(traced_balance, 0x31, 0);
account_access!(traced_extcodesize, 0x3b, 0);
account_access!(traced_extcodecopy, 0x3c, 0);
account_access!(traced_extcodehash, 0x3f, 0);
slot_access!(traced_sload, 0x54);
slot_access!(traced_sstore, 0x55);
account_access!(traced_call, 0xf1, 1);
account_access!(traced_call_code, 0xf2, 1);
account_access!(traced_delegate_call, 0xf4, 1);
account_access!(traced_static_call, 0xfa, 1);

type Entry = (u8, fn(Context<'_>) -> Done);
const ALWAYS: [Entry; 2] = [(0x20, keccak256), (0x5b, jumpdest)];
const TRACED: [Entry; 16] = [
    (0x31, traced_balance),
    (0x3b, traced_extcodesize),
    (0x3c, traced_extcodecopy),
    (0x3f, traced_extcodehash),
    (0x54, traced_sload),
    (0x55, traced_sstore),
    (0xa0, log::<0>),
    (0xa1, log::<1>),
    (0xa2, log::<2>),
    (0xa3, log::<3>),
    (0xa4, log::<4>),
    (0xf1, traced_call),
    (0xf2, traced_call_code),
    (0xf4, traced_delegate_call),
    (0xfa, traced_static_call),
    (0xff, traced_selfdestruct),
];

/// Makes the table of a fork. The traced one costs time.
pub fn instructions(spec: SpecId, is_traced: bool) -> Instructions {
    let added = ALWAYS.into_iter().chain(TRACED.into_iter().filter(|_| is_traced));
    table(spec, added)
}

#[cfg(feature = "ethereum")]
fn table(spec: SpecId, added: impl Iterator<Item = Entry>) -> Instructions {
    use crate::revm::interpreter::instructions::gas_table_spec;
    let mut table = ORIGINAL;
    for (opcode, function) in added {
        table[opcode as usize] = Instruction::new(function);
    }
    Instructions::new(table, gas_table_spec(spec), spec)
}

#[cfg(feature = "optimism")]
fn table(spec: SpecId, added: impl Iterator<Item = Entry>) -> Instructions {
    use crate::revm::interpreter::instructions::instruction_table_gas_changes_spec;
    let mut table = instruction_table_gas_changes_spec::<EthInterpreter, Ctx>(spec);
    for (opcode, function) in added {
        let gas = table[opcode as usize].static_gas();
        table[opcode as usize] = Instruction::new(function, gas);
    }
    Instructions::new(table, spec)
}
