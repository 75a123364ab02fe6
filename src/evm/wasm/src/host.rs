//! What the host gives: reads of state below the journal, the clock, and precompiles that are faster there.

use crate::revm::{
    bytecode::Bytecode,
    database_interface::{DBErrorMarker, Database},
    primitives::{Address, AddressMap, AddressSet, B256, Log, U256, U256Map, map::B256Map},
    state::AccountInfo,
};

#[link(wasm_import_module = "host")]
unsafe extern "C" {
    /// Reads the address at `at` and writes nonce, balance and code hash there. Returns MISSING, EXISTS, HAS_STORAGE or FAILED.
    fn account(at: *mut u8) -> i32;
    /// Writes the code with the hash at `hash` to a buffer from `reserve`. Returns its length, or FAILED.
    fn code(hash: *const u8) -> i32;
    /// Reads address and slot at `at` and writes the value there. Returns FAILED if it failed.
    fn storage(at: *mut u8) -> i32;
    fn block_hash(number: u64, at: *mut u8) -> i32;
    /// Returns 1 if the deadline has passed.
    fn is_late() -> i32;
    fn ecrecover(signature: *const u8, recovery: u32, digest: *const u8, key: *mut u8) -> i32;
    fn modexp(base: *const u8, base_length: usize, exponent: *const u8, exponent_length: usize, modulus: *const u8, modulus_length: usize, result: *mut u8);
}

const MISSING: i32 = 0;
const HAS_STORAGE: i32 = 2;
const FAILED: i32 = -1;
/// Passes of a loop between two looks at the clock.
const PASSES: u32 = 64;
/// Code that is kept for later states.
const MAX_CODE_BYTES: usize = 16 << 20;

/// The host has kept its own error and throws it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostError {
    Reader,
    Late,
}

impl core::fmt::Display for HostError {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter.write_str("the host failed")
    }
}
impl core::error::Error for HostError {}
impl DBErrorMarker for HostError {}

/// The buffer into which the host writes what has no fixed size.
pub static mut INPUT: Vec<u8> = Vec::new();

#[allow(static_mut_refs)]
pub fn input() -> &'static mut Vec<u8> {
    unsafe { &mut INPUT }
}

/// Captured logs and accesses of one transaction, and what later reads need besides the journal.
#[derive(Debug, Default)]
pub struct Trace {
    pub traces_transfers: bool,
    /// Whether each log in the journal is a transfer. Longer than the journal's list after a revert.
    pub transfers: Vec<bool>,
    pub accessed: Vec<(Address, Option<U256>)>,
}

impl Trace {
    pub fn capture(&mut self, position: usize, is_transfer: bool) {
        self.transfers.truncate(position);
        self.transfers.push(is_transfer);
    }
}

/// The state below the journal.
#[derive(Debug, Default)]
pub struct HostDb {
    codes: B256Map<Bytecode>,
    code_bytes: usize,
    pub presets: AddressMap<U256Map<U256>>,
    /// Accounts that have slots but neither code nor nonce (EIP-7610).
    pub with_storage: AddressSet,
    pub dirty: crate::states::DirtyAccounts,
    pub trace: Trace,
    pub reads: crate::reads::Reads,
    pub has_deadline: bool,
    passes: u32,
}

impl HostDb {
    /// Looks at the clock every 64th pass.
    #[inline]
    pub fn pass(&mut self) -> Result<(), HostError> {
        self.passes = self.passes.wrapping_add(1);
        if self.passes % PASSES == 0 { self.check_deadline() } else { Ok(()) }
    }

    pub fn check_deadline(&self) -> Result<(), HostError> {
        if self.has_deadline && unsafe { is_late() } != 0 { Err(HostError::Late) } else { Ok(()) }
    }

    pub fn preset(&self, address: Address, slot: U256) -> Option<U256> {
        self.presets.get(&address)?.get(&slot).copied()
    }

    pub fn read_code(&mut self, hash: B256) -> Result<Bytecode, HostError> {
        if let Some(cached) = self.codes.get(&hash) {
            return Ok(cached.clone());
        }
        let length = unsafe { code(hash.as_ptr()) };
        if length == FAILED {
            return Err(HostError::Reader);
        }
        let bytes = input()[..length as usize].to_vec();
        let code = Bytecode::new_raw(bytes.into());
        // The host gives no code for a hash that it does not know yet.
        if length > 0 {
            if self.code_bytes > MAX_CODE_BYTES {
                self.codes.clear();
                self.code_bytes = 0;
            }
            self.code_bytes += length as usize;
            self.codes.insert(hash, code.clone());
        }
        Ok(code)
    }
}

impl Database for HostDb {
    type Error = HostError;

    fn basic(&mut self, address: Address) -> Result<Option<AccountInfo>, HostError> {
        let mut buffer = [0u8; 72];
        buffer[..20].copy_from_slice(address.as_slice());
        let found = unsafe { account(buffer.as_mut_ptr()) };
        if found == FAILED {
            return Err(HostError::Reader);
        }
        if found == MISSING {
            return Ok(None);
        }
        if found == HAS_STORAGE {
            self.with_storage.insert(address);
        }
        Ok(Some(AccountInfo {
            nonce: u64::from_le_bytes(buffer[..8].try_into().unwrap_or_default()),
            balance: U256::from_be_slice(&buffer[8..40]),
            code_hash: B256::from_slice(&buffer[40..72]),
            code: None,
            ..Default::default()
        }))
    }

    fn code_by_hash(&mut self, hash: B256) -> Result<Bytecode, HostError> {
        self.read_code(hash)
    }

    fn storage(&mut self, address: Address, slot: U256) -> Result<U256, HostError> {
        if let Some(preset) = self.preset(address, slot) {
            return Ok(preset);
        }
        let mut buffer = [0u8; 52];
        buffer[..20].copy_from_slice(address.as_slice());
        buffer[20..].copy_from_slice(&slot.to_be_bytes::<32>());
        if unsafe { storage(buffer.as_mut_ptr()) } == FAILED {
            return Err(HostError::Reader);
        }
        Ok(U256::from_be_slice(&buffer[..32]))
    }

    fn block_hash(&mut self, number: u64) -> Result<B256, HostError> {
        let mut buffer = [0u8; 32];
        if unsafe { block_hash(number, buffer.as_mut_ptr()) } == FAILED {
            return Err(HostError::Reader);
        }
        Ok(B256::new(buffer))
    }
}

/// Cryptography of the host. Everything else of the trait is done here.
#[derive(Debug)]
pub struct HostCrypto;

impl crate::revm::precompile::Crypto for HostCrypto {
    fn secp256k1_ecrecover(&self, signature: &[u8; 64], recovery: u8, digest: &[u8; 32]) -> Result<[u8; 32], crate::revm::precompile::PrecompileHalt> {
        let mut key = [0u8; 64];
        if unsafe { ecrecover(signature.as_ptr(), recovery.into(), digest.as_ptr(), key.as_mut_ptr()) } == 0 {
            return Err(crate::revm::precompile::PrecompileHalt::Secp256k1RecoverFailed);
        }
        let mut hash = crate::keccak::keccak256(&key);
        hash[..12].fill(0);
        Ok(hash)
    }

    fn modexp(&self, base: &[u8], exponent: &[u8], modulus: &[u8]) -> Result<Vec<u8>, crate::revm::precompile::PrecompileHalt> {
        let mut result = vec![0u8; modulus.len()];
        unsafe { modexp(base.as_ptr(), base.len(), exponent.as_ptr(), exponent.len(), modulus.as_ptr(), modulus.len(), result.as_mut_ptr()) };
        Ok(result)
    }
}

/// geth's form of a transfer of ether as a log: an ERC-20 transfer from the address of ERC-7528.
pub fn transfer_log(from: Address, to: Address, value: U256) -> Log {
    const ETHER: Address = Address::repeat_byte(0xee);
    const TRANSFER: B256 = B256::new([
        0xdd, 0xf2, 0x52, 0xad, 0x1b, 0xe2, 0xc8, 0x9b, 0x69, 0xc2, 0xb0, 0x68, 0xfc, 0x37, 0x8d, 0xaa, 0x95, 0x2b, 0xa7, 0xf1, 0x63, 0xc4, 0xa1, 0x16,
        0x28, 0xf5, 0x5a, 0x4d, 0xf5, 0x23, 0xb3, 0xef,
    ]);
    Log::new_unchecked(ETHER, vec![TRANSFER, from.into_word(), to.into_word()], value.to_be_bytes_vec().into())
}
