//! States of several executions in one instance, their writes between transactions, and what they changed.

use crate::host::HostError;
use crate::machine::Machine;
use crate::output::Writer;
use crate::revm::{
    context::journal::{JournalEntry, JournalInner},
    database_interface::Database,
    primitives::{Address, AddressMap, AddressSet, B256, KECCAK_EMPTY, U256, U256Map, hardfork::SpecId, map::U256IndexSet},
    state::{Account, AccountStatus, Bytecode, EvmStorageSlot},
};

/// What the transactions of a state wrote to one account, besides its balance and nonce.
#[derive(Debug, Default, Clone)]
pub struct Dirty {
    pub has_code: bool,
    /// Slots outside `slots` are zero.
    pub is_cleared: bool,
    pub slots: U256IndexSet,
    /// Written between transactions.
    pub is_written: bool,
    /// Exists although it is empty, until a transaction touches it.
    pub keeps_empty: bool,
}

#[derive(Debug, Default)]
pub struct DirtyAccounts {
    accounts: AddressMap<Dirty>,
    /// Accounts that the current transaction touched first.
    pub touched: Vec<Address>,
    /// Accounts that the current transaction destroyed.
    pub destroyed: Vec<Address>,
    /// Accounts written since the last end of writes.
    written: Vec<Address>,
}

impl DirtyAccounts {
    pub fn of(&mut self, address: Address) -> &mut Dirty {
        self.accounts.entry(address).or_default()
    }
}

/// A state that is not selected. The selected one is in the machine.
#[derive(Default)]
struct Stored {
    journal: JournalInner<JournalEntry>,
    presets: AddressMap<U256Map<U256>>,
    with_storage: AddressSet,
    dirty: DirtyAccounts,
}

#[derive(Default)]
pub struct States {
    stored: Vec<Option<Stored>>,
    selected: Option<usize>,
}

impl States {
    pub fn add(&mut self) -> usize {
        let mut state = Stored { journal: JournalInner::new(), ..Stored::default() };
        // What is read between transactions has the first id, so it is cold in each of them.
        state.journal.commit_tx();
        self.stored.push(Some(state));
        self.stored.len() - 1
    }

    pub fn select(&mut self, machine: &mut Machine, id: usize) {
        if self.selected == Some(id) {
            return;
        }
        if let Some(before) = self.selected {
            let mut state = Stored::default();
            exchange(machine, &mut state);
            self.stored[before] = Some(state);
        }
        if let Some(mut state) = self.stored[id].take() {
            exchange(machine, &mut state);
        }
        self.selected = Some(id);
        machine.evm.precompiles.is_changed = true;
    }
}

fn exchange(machine: &mut Machine, state: &mut Stored) {
    let journal = &mut machine.evm.ctx.journaled_state;
    core::mem::swap(&mut journal.inner, &mut state.journal);
    core::mem::swap(&mut journal.database.presets, &mut state.presets);
    core::mem::swap(&mut journal.database.with_storage, &mut state.with_storage);
    core::mem::swap(&mut journal.database.dirty, &mut state.dirty);
}

impl Machine {
    fn is_spurious(&self) -> bool {
        let spec: SpecId = self.evm.ctx.cfg.spec.into();
        spec.is_enabled_in(SpecId::SPURIOUS_DRAGON)
    }

    /// Returns the account without a change of what is warm.
    pub fn peek(&mut self, address: Address) -> Result<&mut Account, HostError> {
        let journal = &mut self.evm.ctx.journaled_state;
        if !journal.inner.state.contains_key(&address) {
            let account = match journal.database.basic(address)? {
                Some(info) => Account::from(info),
                None => Account::new_not_existing(Default::default()),
            };
            journal.inner.state.insert(address, account);
        }
        let account = journal.inner.state.entry(address).or_default();
        if account.is_selfdestructed_locally() {
            account.selfdestruct();
            account.unmark_selfdestructed_locally();
        }
        Ok(account)
    }

    pub fn exists(&mut self, address: Address) -> Result<bool, HostError> {
        let is_spurious = self.is_spurious();
        let keeps_empty = self.evm.ctx.journaled_state.database.dirty.accounts.get(&address).is_some_and(|dirty| dirty.keeps_empty);
        let account = self.peek(address)?;
        Ok(keeps_empty || exists(account, is_spurious))
    }

    pub fn peek_storage(&mut self, address: Address, slot: U256) -> Result<U256, HostError> {
        let account = self.peek(address)?;
        if let Some(slot) = account.storage.get(&slot) {
            return Ok(slot.present_value);
        }
        let is_zero = account.is_created() || account.is_selfdestructed() || account.is_loaded_as_not_existing();
        let journal = &mut self.evm.ctx.journaled_state;
        if is_zero && journal.database.preset(address, slot).is_none() {
            return Ok(U256::ZERO);
        }
        let value = journal.database.storage(address, slot)?;
        let account = journal.inner.state.entry(address).or_default();
        account.storage.insert(slot, EvmStorageSlot::new(value, Default::default()));
        Ok(value)
    }

    pub fn peek_code(&mut self, address: Address) -> Result<Bytecode, HostError> {
        let info = &self.peek(address)?.info;
        if let Some(code) = &info.code {
            return Ok(code.clone());
        }
        let hash = info.code_hash;
        if hash == KECCAK_EMPTY {
            return Ok(Bytecode::default());
        }
        self.evm.ctx.journaled_state.database.read_code(hash)
    }

    fn write(&mut self, address: Address) -> &mut Dirty {
        self.evm.ctx.journaled_state.database.dirty.written.push(address);
        self.keep_empty(address)
    }

    /// Lets the account exist, also for the refund of an authority (EIP-7702).
    fn keep_empty(&mut self, address: Address) -> &mut Dirty {
        let journal = &mut self.evm.ctx.journaled_state;
        journal.inner.state.entry(address).or_default().status -= AccountStatus::LoadedAsNotExisting;
        let dirty = journal.database.dirty.of(address);
        dirty.is_written = true;
        dirty.keeps_empty = true;
        dirty
    }

    pub fn set_account(&mut self, address: Address, nonce: u64, balance: U256) -> Result<(), HostError> {
        let info = &mut self.peek(address)?.info;
        info.nonce = nonce;
        info.balance = balance;
        self.write(address);
        Ok(())
    }

    pub fn set_code(&mut self, address: Address, code: &[u8]) -> Result<(), HostError> {
        let hash = if code.is_empty() { KECCAK_EMPTY } else { B256::new(crate::keccak::keccak256(code)) };
        let info = &mut self.peek(address)?.info;
        info.code_hash = hash;
        info.code = Some(Bytecode::new_raw(code.to_vec().into()));
        self.write(address).has_code = true;
        Ok(())
    }

    pub fn clear(&mut self, address: Address) -> Result<(), HostError> {
        let account = self.peek(address)?;
        account.storage.clear();
        // Storage of a created account is not read.
        account.mark_created();
        let database = &mut self.evm.ctx.journaled_state.database;
        database.with_storage.remove(&address);
        database.presets.remove(&address);
        let dirty = self.keep_empty(address);
        dirty.is_cleared = true;
        dirty.slots.clear();
        Ok(())
    }

    pub fn set_storage(&mut self, address: Address, slot: U256, value: U256) -> Result<(), HostError> {
        self.peek_storage(address, slot)?;
        let account = self.peek(address)?;
        account.storage.insert(slot, EvmStorageSlot::new(value, Default::default()));
        if !value.is_zero() {
            self.evm.ctx.journaled_state.database.with_storage.insert(address);
        }
        self.write(address).slots.insert(slot);
        // Storage alone does not let an end of writes delete the account.
        self.evm.ctx.journaled_state.database.dirty.written.pop();
        Ok(())
    }

    pub fn preset_storage(&mut self, address: Address, slot: U256, value: U256) {
        let journal = &mut self.evm.ctx.journaled_state;
        match journal.inner.state.get_mut(&address) {
            Some(account) => {
                account.storage.insert(slot, EvmStorageSlot::new(value, Default::default()));
            }
            None => {
                journal.database.presets.entry(address).or_default().insert(slot, value);
            }
        }
    }

    pub fn end_writes(&mut self, removes_empty: bool) {
        let journal = &mut self.evm.ctx.journaled_state;
        for address in core::mem::take(&mut journal.database.dirty.written) {
            let is_empty = journal.inner.state.get(&address).is_none_or(|account| account.info.is_empty());
            if removes_empty && is_empty {
                remove_empty(journal, address);
            }
        }
    }

    /// Marks destroyed accounts as not existing, which revm does not. Rules before EIP-161 distinguish them from empty accounts.
    fn settle_destroyed(&mut self) {
        let destroyed = core::mem::take(&mut self.evm.ctx.journaled_state.database.dirty.destroyed);
        if self.is_spurious() {
            return;
        }
        for address in destroyed {
            let journal = &mut self.evm.ctx.journaled_state;
            let Some(account) = journal.inner.state.get_mut(&address) else {
                continue;
            };
            account.selfdestruct();
            account.unmark_selfdestructed_locally();
            account.status |= AccountStatus::LoadedAsNotExisting;
            account.unmark_touch();
            journal.database.dirty.of(address).is_written = true;
        }
    }

    /// Deletes the empty accounts that the transaction touched (EIP-161).
    pub fn settle_touched(&mut self) {
        self.settle_destroyed();
        let is_spurious = self.is_spurious();
        let journal = &mut self.evm.ctx.journaled_state;
        for address in core::mem::take(&mut journal.database.dirty.touched) {
            let is_empty = journal.inner.state.get(&address).is_some_and(|account| account.info.is_empty());
            if is_spurious && is_empty {
                remove_empty(journal, address);
            }
        }
    }

    pub fn changes(&mut self, writer: &mut Writer) {
        let is_spurious = self.is_spurious();
        let journal = &self.evm.ctx.journaled_state;
        let database = &journal.database;
        let start = writer.0.len();
        writer.u32(0);
        let mut count = 0u32;
        let nothing = Dirty::default();
        // The order of a map depends on the instance's seed.
        let mut accounts: Vec<_> = journal.inner.state.iter().collect();
        accounts.sort_unstable_by_key(|(address, _)| **address);
        for (address, account) in accounts {
            let dirty = database.dirty.accounts.get(address).unwrap_or(&nothing);
            if account.is_touched() || dirty.is_written {
                count += 1;
                write_change(writer, *address, account, dirty, is_spurious, database.with_storage.contains(address));
            }
        }
        writer.0[start..start + 4].copy_from_slice(&count.to_le_bytes());
    }
}

type Journal = crate::revm::context::Journal<crate::host::HostDb>;

fn remove_empty(journal: &mut Journal, address: Address) {
    let had_storage = journal.database.with_storage.remove(&address);
    let account = journal.inner.state.entry(address).or_default();
    let dirty = journal.database.dirty.of(address);
    dirty.keeps_empty = false;
    dirty.is_written = true;
    if had_storage || !account.is_loaded_as_not_existing() {
        account.storage.clear();
        account.mark_created();
        dirty.is_cleared = true;
        dirty.slots.clear();
    }
    // revm takes an empty account that was touched for an authority that exists (EIP-7702).
    account.status |= AccountStatus::LoadedAsNotExisting;
    account.unmark_touch();
}

fn exists(account: &Account, is_spurious: bool) -> bool {
    if account.is_selfdestructed_locally() {
        return false;
    }
    if !account.info.is_empty() {
        return true;
    }
    if is_spurious { !account.is_touched() && !account.is_loaded_as_not_existing() } else { account.is_touched() || !account.is_loaded_as_not_existing() }
}

fn write_change(writer: &mut Writer, address: Address, account: &Account, dirty: &Dirty, is_spurious: bool, has_storage: bool) {
    let exists = dirty.keeps_empty || exists(account, is_spurious);
    let info = &account.info;
    let code = if dirty.has_code && exists { info.code.as_ref() } else { None };
    let slots = written_slots(account, dirty);
    let has_storage = has_storage || slots.iter().any(|(_, value)| !value.is_zero());
    writer.raw(address.as_slice());
    writer.u32(u32::from(exists) | u32::from(dirty.is_cleared) << 1 | u32::from(code.is_some()) << 2 | u32::from(has_storage) << 3);
    writer.u64(info.nonce);
    writer.raw(&info.balance.to_be_bytes::<32>());
    writer.raw(info.code_hash.as_slice());
    writer.bytes(code.map(|code| code.original_byte_slice()).unwrap_or_default());
    writer.u32(slots.len() as u32);
    for (slot, value) in slots {
        writer.raw(&slot.to_be_bytes::<32>());
        writer.raw(&value.to_be_bytes::<32>());
    }
}

fn written_slots(account: &Account, dirty: &Dirty) -> Vec<(U256, U256)> {
    if account.is_selfdestructed_locally() {
        return Vec::new();
    }
    dirty
        .slots
        .iter()
        .filter_map(|slot| account.storage.get(slot).map(|value| (*slot, value.present_value)))
        .filter(|(_, value)| !(dirty.is_cleared && value.is_zero()))
        .collect()
}
