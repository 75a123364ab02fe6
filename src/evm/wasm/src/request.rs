//! The bytes of a request. Numbers are little-endian, except for words of 32 bytes, which are as in the EVM.

use crate::revm::{
    context::TxEnv,
    context_interface::{
        either::Either,
        transaction::{AccessList, AccessListItem, Authorization, RecoveredAuthority, RecoveredAuthorization},
    },
    primitives::{Address, B256, Bytes, HashMap, TxKind, U256},
};

pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }
    pub fn take(&mut self, length: usize) -> &'a [u8] {
        let taken = &self.bytes[self.at..self.at + length];
        self.at += length;
        taken
    }
    pub fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take(4).try_into().unwrap_or_default())
    }
    pub fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take(8).try_into().unwrap_or_default())
    }
    pub fn u128(&mut self) -> u128 {
        u128::from_le_bytes(self.take(16).try_into().unwrap_or_default())
    }
    pub fn word(&mut self) -> U256 {
        U256::from_be_slice(self.take(32))
    }
    pub fn hash(&mut self) -> B256 {
        B256::from_slice(self.take(32))
    }
    pub fn address(&mut self) -> Address {
        Address::from_slice(self.take(20))
    }
    pub fn bytes(&mut self) -> Bytes {
        let length = self.u32() as usize;
        Bytes::copy_from_slice(self.take(length))
    }
    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.u32()).map(|_| item(self)).collect()
    }
}

pub mod flags {
    /// Above the cap of execution, the gas limit is for state alone.
    #[cfg_attr(feature = "optimism", allow(dead_code))] pub const CAPS_EXECUTION: u32 = 512;
    pub const CREATES: u32 = 1;
    pub const TRACES_TRANSFERS: u32 = 2;
    pub const TRACES_ACCESS: u32 = 4;
    pub const HAS_RAW: u32 = 8;
    pub const IS_FREE: u32 = 16;
    pub const IS_DEPOSIT: u32 = 32;
    pub const IS_SYSTEM: u32 = 64;
    pub const HAS_DEADLINE: u32 = 128;
    pub const TRACES_READS: u32 = 256;
}

#[cfg_attr(feature = "ethereum", allow(dead_code))]
pub struct Deposit {
    pub mint: u128,
    pub is_system: bool,
}

#[cfg_attr(feature = "ethereum", allow(dead_code))]
pub struct Request {
    pub flags: u32,
    /// What the sender pays before the run.
    pub charge: U256,
    pub base: TxEnv,
    pub raw: Option<Bytes>,
    pub deposit: Option<Deposit>,
    pub moved: HashMap<Address, Option<Address>>,
}

impl Request {
    pub fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    pub fn parse(bytes: &[u8]) -> Self {
        let mut reader = Reader::new(bytes);
        let flags = reader.u32();
        let caller = reader.address();
        let to = reader.address();
        let mut base = TxEnv { caller, gas_limit: reader.u64(), gas_price: reader.u128(), ..TxEnv::default() };
        base.chain_id = None;
        base.kind = if flags & flags::CREATES != 0 { TxKind::Create } else { TxKind::Call(to) };
        base.value = reader.word();
        let charge = reader.word();
        let mint = reader.u128();
        base.data = reader.bytes();
        let raw = reader.bytes();
        base.access_list = AccessList(reader.list(|reader| AccessListItem { address: reader.address(), storage_keys: reader.list(Reader::hash) }));
        base.blob_hashes = reader.list(Reader::hash);
        base.authorization_list = reader.list(authorization).into_iter().map(Either::Right).collect();
        let moved = reader.list(|reader| {
            let to = reader.address();
            let is_removed = reader.u32() == 1;
            let from = reader.address();
            (to, (!is_removed).then_some(from))
        });
        base.tx_type = if !base.authorization_list.is_empty() {
            4
        } else if !base.blob_hashes.is_empty() {
            3
        } else {
            1
        };
        let is_deposit = flags & flags::IS_DEPOSIT != 0;
        Self {
            flags,
            charge,
            base,
            raw: (flags & flags::HAS_RAW != 0).then_some(raw),
            deposit: is_deposit.then_some(Deposit { mint, is_system: flags & flags::IS_SYSTEM != 0 }),
            moved: moved.into_iter().collect(),
        }
    }
}

/// The host has recovered the signer, or marks an authorization without one.
fn authorization(reader: &mut Reader<'_>) -> RecoveredAuthorization {
    let inner = Authorization { chain_id: reader.word(), address: reader.address(), nonce: reader.u64() };
    let is_valid = reader.u32() == 1;
    let authority = reader.address();
    RecoveredAuthorization::new_unchecked(inner, if is_valid { RecoveredAuthority::Valid(authority) } else { RecoveredAuthority::Invalid })
}
