//! What a transaction reads. A read counts if its opcode begins with all operands, whatever then happens to the frame.
//! Which fields an opcode reads depends on its operands and the fork, and never on a value of the state.

use crate::chain::{Ctx, SpecId};
use crate::machine::Machine;
use crate::output::Writer;
use crate::revm::{
    bytecode::Bytecode,
    handler::{FrameResult, ItemOrResult},
    interpreter::{
        FrameInput, InstructionResult, Interpreter,
        interpreter::EthInterpreter,
        interpreter_action::FrameInit,
        interpreter_types::{InputsTr, Jumps},
    },
    primitives::{Address, AddressMap, U256, map::U256IndexSet},
};
use std::collections::BTreeSet;

// The bits of an account's fields, in the order of the host's list.
pub const BALANCE: u32 = 1;
pub const NONCE: u32 = 2;
pub const CODE: u32 = 4;
pub const EMPTINESS: u32 = 8;
/// Whether the account has slots that are not zero (EIP-7610).
pub const STORAGE: u32 = 16;

/// Blocks whose hash BLOCKHASH returns.
const HASHES: u64 = 256;

#[derive(Debug, Default)]
struct AccountReads {
    fields: u32,
    slots: U256IndexSet,
}

#[derive(Debug, Default)]
pub struct Reads {
    pub is_on: bool,
    accounts: AddressMap<AccountReads>,
    block_hashes: BTreeSet<u64>,
    /// A bit for each opcode that ran.
    environment: u128,
}

impl Reads {
    pub fn new(is_on: bool) -> Self {
        Self { is_on, ..Self::default() }
    }

    pub fn account(&mut self, address: Address, fields: u32) {
        if fields != 0 {
            self.accounts.entry(address).or_default().fields |= fields;
        }
    }

    fn slot(&mut self, address: Address, slot: U256) {
        self.accounts.entry(address).or_default().slots.insert(slot);
    }

    /// A contract that is created at an address.
    fn creation(&mut self, created: Address) {
        self.account(created, NONCE | CODE | EMPTINESS | STORAGE);
    }

    /// The transaction's own frame. Its other frames begin with an opcode.
    fn first_frame(&mut self, init: &FrameInit) {
        match &init.frame_input {
            FrameInput::Call(call) => {
                self.account(call.bytecode_address, CODE);
                if call.value.transfer().is_some_and(|value| !value.is_zero()) {
                    self.account(call.caller, BALANCE);
                    self.account(call.target_address, EMPTINESS);
                }
            }
            FrameInput::Create(create) => self.account(create.caller(), NONCE | balance_if(create.value())),
            FrameInput::Empty => {}
        }
    }

    /// The code to which an account delegates (EIP-7702).
    fn delegate_of(&mut self, code: Option<&Bytecode>) {
        if let Some(delegate) = code.and_then(Bytecode::eip7702_address) {
            self.account(delegate, CODE);
        }
    }

    /// Accounts are sorted, because the order of a map depends on the instance's seed.
    pub fn write(&self, writer: &mut Writer) {
        let mut accounts: Vec<_> = self.accounts.iter().collect();
        accounts.sort_unstable_by_key(|(address, _)| **address);
        writer.u32(accounts.len() as u32);
        for (address, reads) in accounts {
            writer.raw(address.as_slice());
            writer.u32(reads.fields);
            writer.u32(reads.slots.len() as u32);
            for slot in &reads.slots {
                writer.raw(&slot.to_be_bytes::<32>());
            }
        }
        writer.u32(self.block_hashes.len() as u32);
        for number in &self.block_hashes {
            writer.u64(*number);
        }
        let opcodes: Vec<u32> = (0..u128::BITS).filter(|opcode| self.environment >> opcode & 1 != 0).collect();
        writer.u32(opcodes.len() as u32);
        for opcode in opcodes {
            writer.u32(opcode);
        }
    }
}

impl Machine {
    pub fn is_recording(&self) -> bool {
        self.evm.ctx.journaled_state.database.reads.is_on
    }

    pub fn record_frame(&mut self, init: &FrameInit, created: Option<Address>) {
        let reads = &mut self.evm.ctx.journaled_state.database.reads;
        if init.depth == 0 {
            reads.first_frame(init);
        }
        if let Some(created) = created {
            reads.creation(created);
        }
    }

    /// Records the code to which the called account delegates. A call that did not begin has not read it.
    pub fn record_delegate(&mut self, called: Address, outcome: &ItemOrResult<Address, FrameResult>) {
        let has_begun = match outcome {
            ItemOrResult::Item(_) => true,
            ItemOrResult::Result(result) => {
                !matches!(result.interpreter_result().result, InstructionResult::CallTooDeep | InstructionResult::OutOfFunds)
            }
        };
        let journal = &mut self.evm.ctx.journaled_state;
        if has_begun && let Some(account) = journal.inner.state.get(&called) {
            journal.database.reads.delegate_of(account.info.code.as_ref());
        }
    }
}

/// A sender without value needs no balance.
fn balance_if(value: U256) -> u32 {
    if value.is_zero() { 0 } else { BALANCE }
}

/// Records the reads of the next opcode.
pub fn record(interpreter: &Interpreter<EthInterpreter>, context: &mut Ctx) {
    let opcode = interpreter.bytecode.opcode();
    let Some((since, inputs)) = reader(opcode) else {
        return;
    };
    let spec: SpecId = context.cfg.spec.into();
    if !spec.is_enabled_in(since) || interpreter.stack.len() < inputs {
        return;
    }
    // The first operand is 0.
    let operand = |position: usize| interpreter.stack.peek(position).unwrap_or_default();
    let address = |position: usize| Address::from_word(operand(position).into());
    let own = interpreter.input.target_address();
    let number = context.block.number;
    let reads = &mut context.journaled_state.database.reads;
    match opcode {
        0x31 => reads.account(address(0), BALANCE),
        0x3b | 0x3c => reads.account(address(0), CODE),
        0x3f => reads.account(address(0), CODE | EMPTINESS),
        0x47 => reads.account(own, BALANCE),
        0x54 | 0x55 => reads.slot(own, operand(0)),
        0xf0 | 0xf5 => reads.account(own, NONCE | balance_if(operand(0))),
        0xf1 => {
            // Before EIP-161, each call of an account that does not exist costs more.
            let has_value = !operand(2).is_zero();
            let emptiness = if has_value || !spec.is_enabled_in(SpecId::SPURIOUS_DRAGON) { EMPTINESS } else { 0 };
            reads.account(address(1), CODE | emptiness);
            reads.account(own, balance_if(operand(2)));
        }
        0xf2 => {
            reads.account(address(1), CODE);
            reads.account(own, balance_if(operand(2)));
        }
        0xf4 | 0xfa => reads.account(address(1), CODE),
        0xff => {
            reads.account(own, BALANCE);
            reads.account(address(0), EMPTINESS);
        }
        environment => {
            reads.environment |= 1 << environment;
            if environment == 0x40
                && let (Ok(hashed), Ok(number)) = (u64::try_from(operand(0)), u64::try_from(number))
                && hashed < number
                && number - hashed <= HASHES
            {
                reads.block_hashes.insert(hashed);
            }
        }
    }
}

/// Returns the fork and the number of operands of an opcode that reads state or environment.
fn reader(opcode: u8) -> Option<(SpecId, usize)> {
    Some(match opcode {
        0x32 | 0x3a | 0x41..=0x45 | 0x5a => (SpecId::FRONTIER, 0),
        0x31 | 0x3b | 0x40 | 0x54 | 0xff => (SpecId::FRONTIER, 1),
        0x55 => (SpecId::FRONTIER, 2),
        0x3c => (SpecId::FRONTIER, 4),
        0xf0 => (SpecId::FRONTIER, 3),
        0xf1 | 0xf2 => (SpecId::FRONTIER, 7),
        0xf4 => (SpecId::HOMESTEAD, 6),
        0xfa => (SpecId::BYZANTIUM, 6),
        0x3f => (SpecId::PETERSBURG, 1),
        0xf5 => (SpecId::PETERSBURG, 4),
        0x46 | 0x47 => (SpecId::ISTANBUL, 0),
        0x48 => (SpecId::LONDON, 0),
        0x4a => (SpecId::CANCUN, 0),
        0x4b => (SpecId::AMSTERDAM, 0),
        _ => return None,
    })
}
