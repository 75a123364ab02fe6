//! What a transaction reads. A read counts if its opcode begins with all operands, whatever then happens to the frame.
//! Which fields an opcode reads depends on its operands and the fork, and never on a value of the state.

use crate::chain::{Ctx, SpecId};
use crate::machine::Machine;
use crate::output::Writer;
use crate::request::{Request, flags};
use crate::revm::{
    bytecode::Bytecode,
    context::TxEnv,
    context_interface::transaction::AuthorizationTr,
    handler::{FrameResult, ItemOrResult},
    interpreter::{
        InstructionResult, Interpreter,
        interpreter::EthInterpreter,
        interpreter_types::{InputsTr, Jumps, MemoryTr},
    },
    primitives::{Address, AddressMap, TxKind, U256, map::U256IndexSet},
};
use std::collections::BTreeSet;

// The bits of an account's fields, in the order of the host's list.
const BALANCE: u32 = 1;
const NONCE: u32 = 2;
const CODE: u32 = 4;
const EMPTINESS: u32 = 8;
/// Whether the account has slots that are not zero (EIP-7610).
const STORAGE: u32 = 16;

/// EIP-7954
const MAX_INIT_CODE_BYTES: usize = 131_072;
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
    pub fn of(request: &Request) -> Self {
        let mut reads = Self { is_on: request.has(flags::TRACES_READS), ..Self::default() };
        if reads.is_on {
            reads.transaction(&request.base);
            for signer in request.base.authorization_list.iter().filter_map(AuthorizationTr::authority) {
                reads.account(signer, NONCE | CODE | EMPTINESS);
            }
        }
        reads
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
    pub fn creation(&mut self, created: Address) {
        self.account(created, NONCE | CODE | EMPTINESS | STORAGE);
    }

    /// Its own call or creation. From Amsterdam on, a transaction can run out of gas before its frame begins.
    fn transaction(&mut self, base: &TxEnv) {
        let balance = balance_if(base.value);
        match base.kind {
            TxKind::Call(to) => {
                self.account(to, CODE | if base.value.is_zero() { 0 } else { EMPTINESS });
                self.account(base.caller, balance);
            }
            TxKind::Create => self.account(base.caller, NONCE | balance),
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
    if matches!(opcode, 0xf0 | 0xf5) && spec.is_enabled_in(SpecId::AMSTERDAM) {
        record_creation(interpreter, context);
    }
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

/// From Amsterdam on, a creation charges for a new account before its frame begins.
fn record_creation(interpreter: &Interpreter<EthInterpreter>, context: &mut Ctx) {
    let operand = |position: usize| interpreter.stack.peek(position).unwrap_or_default();
    let own = interpreter.input.target_address();
    let created = if interpreter.bytecode.opcode() == 0xf0 {
        let nonce = context.journaled_state.inner.state.get(&own).map(|account| account.info.nonce);
        own.create(nonce.unwrap_or_default())
    } else {
        let Some(code) = init_code(interpreter, operand(1), operand(2)) else {
            return;
        };
        own.create2(operand(3).to_be_bytes::<32>(), crate::keccak::keccak256(&code))
    };
    context.journaled_state.database.reads.creation(created);
}

/// Memory outside the present one is zero. Longer code fails before it is charged.
fn init_code(interpreter: &Interpreter<EthInterpreter>, offset: U256, length: U256) -> Option<Vec<u8>> {
    let length = usize::try_from(length).ok().filter(|length| *length <= MAX_INIT_CODE_BYTES)?;
    let mut code = vec![0; length];
    let size = interpreter.memory.size();
    if let Some(from) = usize::try_from(offset).ok().filter(|from| *from < size) {
        let present = length.min(size - from);
        code[..present].copy_from_slice(interpreter.memory.slice_len(from, present).as_ref());
    }
    Some(code)
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
