//! The machine around revm's: it looks at each frame as it begins, and at the transaction's own frame as it ends.

use crate::chain::{Ctx, Spec};
use crate::host::{HostError, transfer_log};
use crate::instructions::{Instructions, instructions};
use crate::precompiles::MovablePrecompiles;
use crate::reads::record;
use crate::revm::{
    context::{Evm, FrameStack, journal::JournalEntry},
    context_interface::{JournalTr, context::ContextError},
    handler::{EthFrame, EvmTr, FrameInitOrResult, FrameResult, ItemOrResult, evm::FrameTr},
    interpreter::{
        CallScheme, CallValue, FrameInput, InstructionResult, InterpreterAction, interpreter::EthInterpreter, interpreter_action::FrameInit,
        interpreter_types::{Jumps, LegacyBytecode, LoopControl, MemoryTr, ReturnData},
    },
    primitives::{Address, U256},
};

type Frame = EthFrame<EthInterpreter>;
type Failure = ContextError<HostError>;

/// The transaction's own frame before its last opcode.
#[derive(Debug, Default, Clone)]
pub struct LastStep {
    pub opcode: u8,
    /// The byte after the opcode.
    pub operand: u8,
    pub stack_length: usize,
    /// The top of the stack, last.
    pub stack: Vec<U256>,
    pub gas_left: u64,
    pub memory_bytes: u64,
    pub return_bytes: u64,
    /// First byte of the code that a creation returned.
    pub output: Vec<u8>,
}

struct Overflow {
    from: Address,
    to: Address,
    value: U256,
}

#[derive(Debug)]
pub struct Machine {
    pub evm: Evm<Ctx, (), Instructions, MovablePrecompiles, Frame>,
    pub last_step: Option<LastStep>,
    pub result: InstructionResult,
}

impl Machine {
    pub fn new(context: Ctx, spec: Spec) -> Self {
        let evm = Evm::new(context, instructions(spec.into(), false), MovablePrecompiles::new(spec));
        Self { evm, last_step: None, result: InstructionResult::Stop }
    }

    /// Ether that the frame moves from one account to another. The address of a creation is not known yet.
    fn transfer(&self, input: &FrameInput) -> Option<(Address, U256)> {
        if !self.evm.ctx.journaled_state.database.trace.traces_transfers {
            return None;
        }
        let (from, value) = match input {
            // CALLCODE sends value from an account to itself.
            FrameInput::Call(call) => match call.value {
                CallValue::Transfer(value) if call.scheme != CallScheme::CallCode => (call.caller, value),
                _ => return None,
            },
            FrameInput::Create(create) => (create.caller(), create.value()),
            FrameInput::Empty => return None,
        };
        (!value.is_zero()).then_some((from, value))
    }

    /// A payment that would exceed 256 bits. geth's balances wrap, where revm refuses it.
    fn take_overflow(&mut self, init: &mut FrameInit) -> Option<Overflow> {
        let FrameInput::Call(call) = &mut init.frame_input else {
            return None;
        };
        let CallValue::Transfer(value) = call.value else {
            return None;
        };
        let state = &self.evm.ctx.journaled_state.inner.state;
        let from = state.get(&call.caller)?.info.balance;
        let to = state.get(&call.target_address)?.info.balance;
        if call.caller == call.target_address || from < value || to.checked_add(value).is_some() {
            return None;
        }
        call.value = CallValue::Apparent(value);
        Some(Overflow { from: call.caller, to: call.target_address, value })
    }

    /// Moves the value in the frame's part of the journal, so that it moves back if the frame fails.
    fn pay(&mut self, Overflow { from, to, value }: Overflow) {
        let journal = &mut self.evm.ctx.journaled_state.inner;
        journal.touch(from);
        journal.touch(to);
        if let Some(account) = journal.state.get_mut(&from) {
            account.info.balance = account.info.balance.wrapping_sub(value);
        }
        if let Some(account) = journal.state.get_mut(&to) {
            account.info.balance = account.info.balance.wrapping_add(value);
        }
        journal.journal.push(JournalEntry::BalanceTransfer { from, to, balance: value });
    }

    /// Returns the address at which the frame creates a contract. A creation can fail before it has one.
    fn created(&mut self, init: &FrameInit) -> Result<Option<Address>, Failure> {
        let FrameInput::Create(create) = &init.frame_input else {
            return Ok(None);
        };
        let journal = &mut self.evm.ctx.journaled_state;
        if init.depth > 1024 {
            return Ok(None);
        }
        let caller = journal.load_account(create.caller())?.data.info.clone();
        if caller.balance < create.value() || caller.nonce == u64::MAX {
            return Ok(None);
        }
        Ok(Some(create.created_address(caller.nonce)))
    }

    /// Whether the creation meets an account that has only slots (EIP-7610).
    fn has_storage_collision(&mut self, created: Address) -> Result<bool, Failure> {
        let journal = &mut self.evm.ctx.journaled_state;
        let account = journal.load_account(created)?.data;
        let is_bare = account.info.nonce == 0 && account.info.is_empty_code_hash();
        Ok(is_bare && journal.database.with_storage.contains(&created))
    }

    /// Runs a frame in steps. Records what they read if `RECORDS`. Keeps what geth's words for a halt of the transaction's own frame need.
    fn run_steps<const RECORDS: bool>(&mut self) -> InterpreterAction {
        let Evm { ctx, instruction, frame_stack, .. } = &mut self.evm;
        let frame = frame_stack.get();
        let is_first = frame.depth == 0;
        let is_creation = matches!(frame.input, FrameInput::Create(_));
        let interpreter = &mut frame.interpreter;
        let (mut stack_length, mut gas_left);
        #[cfg(feature = "ethereum")]
        {
            use crate::revm::handler::instructions::InstructionProvider;
            let result = loop {
                (stack_length, gas_left) = (interpreter.stack.len(), interpreter.gas.remaining());
                if RECORDS {
                    record(interpreter, ctx);
                }
                if let Err(result) = interpreter.step(instruction.instruction_table(), instruction.gas_table(), ctx) {
                    break result;
                }
            };
            if interpreter.bytecode.action().is_none() {
                interpreter.halt(result);
            }
        }
        #[cfg(feature = "optimism")]
        {
            use crate::revm::handler::instructions::InstructionProvider;
            loop {
                (stack_length, gas_left) = (interpreter.stack.len(), interpreter.gas.remaining());
                if RECORDS {
                    record(interpreter, ctx);
                }
                interpreter.step(instruction.instruction_table(), ctx);
                if interpreter.bytecode.is_end() {
                    break;
                }
            }
        }
        let action = interpreter.take_next_action();
        if let InterpreterAction::Return(result) = &action
            && is_first
            && (is_creation || !result.result.is_ok_or_revert())
        {
            // A creation can still fail when its code is stored.
            let words = unsafe { core::slice::from_raw_parts(interpreter.stack.data().as_ptr(), stack_length) };
            let code = interpreter.bytecode.bytecode_slice();
            let pc = interpreter.bytecode.pc();
            self.last_step = Some(LastStep {
                opcode: pc.checked_sub(1).and_then(|at| code.get(at)).copied().unwrap_or(0),
                operand: code.get(pc).copied().unwrap_or(0),
                stack_length,
                stack: words[stack_length.saturating_sub(8)..].to_vec(),
                gas_left,
                memory_bytes: interpreter.memory.size() as u64,
                return_bytes: interpreter.return_data.buffer().len() as u64,
                output: result.output.first().copied().into_iter().collect(),
            });
        }
        action
    }
}

impl EvmTr for Machine {
    type Context = Ctx;
    type Instructions = Instructions;
    type Precompiles = MovablePrecompiles;
    type Frame = Frame;

    fn all(&self) -> (&Ctx, &Instructions, &MovablePrecompiles, &FrameStack<Frame>) {
        self.evm.all()
    }

    fn all_mut(&mut self) -> (&mut Ctx, &mut Instructions, &mut MovablePrecompiles, &mut FrameStack<Frame>) {
        self.evm.all_mut()
    }

    fn frame_init(&mut self, mut init: FrameInit) -> Result<ItemOrResult<&mut Frame, FrameResult>, Failure> {
        self.evm.ctx.journaled_state.database.pass()?;
        let transfer = self.transfer(&init.frame_input);
        let to = match &init.frame_input {
            FrameInput::Call(call) => call.target_address,
            _ => Address::ZERO,
        };
        let called = match &init.frame_input {
            FrameInput::Call(call) => Some(call.bytecode_address),
            _ => None,
        };
        let created = self.created(&init)?;
        let is_recording = self.is_recording();
        if let Some(created) = created.filter(|_| is_recording) {
            self.evm.ctx.journaled_state.database.reads.creation(created);
        }
        let collision = match created {
            Some(address) if self.has_storage_collision(address)? => Some(address),
            _ => None,
        };
        if let Some(account) = collision.and_then(|address| self.evm.ctx.journaled_state.inner.state.get_mut(&address)) {
            // revm finds a collision by the nonce.
            account.info.nonce = 1;
        }
        let overflow = self.take_overflow(&mut init);
        let outcome = self.evm.frame_init(init).map(|outcome| match outcome {
            ItemOrResult::Item(frame) => ItemOrResult::Item(frame.interpreter.input.target_address),
            ItemOrResult::Result(result) => ItemOrResult::Result(result),
        });
        if let Some(account) = collision.and_then(|address| self.evm.ctx.journaled_state.inner.state.get_mut(&address)) {
            account.info.nonce = 0;
        }
        let outcome = outcome.map_err(|error| self.own_error(error))?;
        if let Some(called) = called.filter(|_| is_recording) {
            self.record_delegate(called, &outcome);
        }
        let is_begun = match &outcome {
            ItemOrResult::Item(_) => true,
            ItemOrResult::Result(result) => result.interpreter_result().result.is_ok(),
        };
        if let Some(overflow) = overflow.filter(|_| is_begun) {
            self.pay(overflow);
        }
        if let Some((from, value)) = transfer {
            let journal = &mut self.evm.ctx.journaled_state;
            let receiver = match &outcome {
                ItemOrResult::Item(target) => Some(*target),
                ItemOrResult::Result(result) => result.interpreter_result().result.is_ok().then_some(to),
            };
            if let Some(receiver) = receiver {
                journal.database.trace.capture(journal.inner.logs.len(), true);
                journal.log(transfer_log(from, receiver, value));
            }
        }
        match outcome {
            ItemOrResult::Item(_) => Ok(ItemOrResult::Item(self.evm.frame_stack.get())),
            ItemOrResult::Result(result) => {
                self.result = result.interpreter_result().result;
                Ok(ItemOrResult::Result(result))
            }
        }
    }

    fn frame_run(&mut self) -> Result<FrameInitOrResult<Frame>, Failure> {
        let is_recording = self.is_recording();
        let next = if is_recording || self.evm.frame_stack.get().depth == 0 {
            let action = if is_recording { self.run_steps::<true>() } else { self.run_steps::<false>() };
            let Evm { ctx, frame_stack, .. } = &mut self.evm;
            let frame = frame_stack.get();
            frame.process_next_action::<_, Failure>(ctx, action).inspect(|next| {
                if next.is_result() {
                    frame.set_finished(true);
                }
            })
        } else {
            self.evm.frame_run()
        }?;
        if let ItemOrResult::Result(result) = &next {
            self.result = result.interpreter_result().result;
        }
        Ok(next)
    }

    fn frame_return_result(&mut self, result: <Frame as FrameTr>::FrameResult) -> Result<Option<FrameResult>, Failure> {
        self.evm.frame_return_result(result)
    }
}

impl Machine {
    /// A precompile that the deadline stopped gives only a text.
    fn own_error(&mut self, error: Failure) -> Failure {
        match core::mem::replace(&mut self.evm.ctx.error, Ok(())) {
            Err(own) => own,
            Ok(()) => error,
        }
    }
}
