//! revm for the host: fixed buffers in, fixed buffers out. README.md describes the boundary.

#[cfg(feature = "optimism")]
pub use op_revm::revm;
#[cfg(feature = "ethereum")]
pub use revm;

#[cfg_attr(feature = "ethereum", path = "ethereum.rs")]
#[cfg_attr(feature = "optimism", path = "optimism.rs")]
mod chain;
mod host;
mod instructions;
mod keccak;
mod machine;
mod output;
mod precompiles;
mod reads;
mod request;
mod run;
mod states;

use chain::SPECS;
use machine::Machine;
use output::Writer;
use request::{Reader, Request};
use crate::revm::{
    context::CfgEnv,
    context_interface::block::BlobExcessGasAndPrice,
    primitives::{Address, U256},
};
use states::States;

/// Memory of the frames of one transaction. 50M gas pays for 150 MB.
const MEMORY_LIMIT: u64 = 1536 << 20;
const SCRATCH_BYTES: usize = 96;
const FAILED: i32 = -1;

struct Instance {
    machine: Machine,
    states: States,
    output: Writer,
    scratch: [u8; SCRATCH_BYTES],
}

static mut INSTANCE: Option<Instance> = None;

#[allow(static_mut_refs)]
fn instance() -> &'static mut Instance {
    // SAFETY: a module has one thread, and the host calls no export that uses the instance from within an import.
    unsafe {
        INSTANCE.get_or_insert_with(|| {
            revm::precompile::install_crypto(host::HostCrypto);
            let spec = SPECS[SPECS.len() - 1];
            Instance {
                machine: Machine::new(chain::new_context(spec), spec),
                states: States::default(),
                output: Writer::default(),
                scratch: [0; SCRATCH_BYTES],
            }
        })
    }
}

impl Instance {
    fn address(&self) -> Address {
        Address::from_slice(&self.scratch[..20])
    }
    fn slot(&self) -> U256 {
        U256::from_be_slice(&self.scratch[20..52])
    }
    fn value(&self) -> U256 {
        U256::from_be_slice(&self.scratch[52..84])
    }
}

fn status<T>(result: Result<T, host::HostError>) -> i32 {
    if result.is_ok() { 0 } else { FAILED }
}

/// Returns a buffer of `length` bytes for what has no fixed size.
#[unsafe(no_mangle)]
pub extern "C" fn reserve(length: usize) -> *mut u8 {
    let input = host::input();
    if input.len() < length {
        input.resize(length, 0);
    }
    input.as_mut_ptr()
}

/// Returns the buffer for an address, a slot and a value.
#[unsafe(no_mangle)]
pub extern "C" fn scratch() -> *mut u8 {
    instance().scratch.as_mut_ptr()
}

#[unsafe(no_mangle)]
pub extern "C" fn output() -> *const u8 {
    instance().output.0.as_ptr()
}

#[unsafe(no_mangle)]
pub extern "C" fn add_state() -> usize {
    instance().states.add()
}

#[unsafe(no_mangle)]
pub extern "C" fn select_state(id: usize) {
    let instance = instance();
    instance.states.select(&mut instance.machine, id);
}

/// Sets rules and block from the input.
#[unsafe(no_mangle)]
pub extern "C" fn set_block(length: usize) {
    let machine = &mut instance().machine;
    let mut reader = Reader::new(&host::input()[..length]);
    let spec = SPECS[reader.u32() as usize];
    let max_pairing_bytes = reader.u32() as usize;
    let chain_id = reader.u64();
    let context = &mut machine.evm.ctx;
    if context.cfg.spec != spec || context.cfg.memory_limit != MEMORY_LIMIT {
        context.cfg = CfgEnv::new_with_spec(spec);
        context.cfg.memory_limit = MEMORY_LIMIT;
        context.cfg.tx_gas_limit_cap = Some(u64::MAX);
        // The host has checked.
        context.cfg.disable_nonce_check = true;
        context.cfg.disable_eip3607 = true;
        machine.evm.instruction = instructions::instructions(spec.into(), false);
        machine.evm.precompiles = precompiles::MovablePrecompiles::new(spec);
    }
    machine.evm.precompiles.max_pairing_bytes = if max_pairing_bytes == 0 { usize::MAX } else { max_pairing_bytes };
    context.cfg.chain_id = chain_id;
    let block = &mut context.block;
    block.number = reader.word();
    block.timestamp = reader.word();
    block.beneficiary = reader.address();
    block.gas_limit = reader.u64();
    block.basefee = reader.u64();
    block.prevrandao = Some(reader.hash());
    block.difficulty = reader.word();
    block.blob_excess_gas_and_price = Some(BlobExcessGasAndPrice { excess_blob_gas: 0, blob_gasprice: reader.u128() });
    block.slot_num = reader.u64();
}

/// Runs the transaction in the input. Returns the length of the result in the output.
#[unsafe(no_mangle)]
pub extern "C" fn transact(length: usize) -> usize {
    let instance = instance();
    let request = Request::parse(&host::input()[..length]);
    instance.output.0.clear();
    run::transact(&mut instance.machine, request, &mut instance.output);
    instance.machine.settle_touched();
    instance.output.0.len()
}

#[unsafe(no_mangle)]
pub extern "C" fn system_call(length: usize) -> usize {
    let instance = instance();
    let request = Request::parse(&host::input()[..length]);
    instance.output.0.clear();
    run::system_call(&mut instance.machine, request, &mut instance.output);
    instance.machine.settle_touched();
    instance.output.0.len()
}

/// Writes nonce, balance and code hash to the scratch buffer. Returns 1 if the account exists.
#[unsafe(no_mangle)]
pub extern "C" fn get_account() -> i32 {
    let Instance { machine, scratch, .. } = instance();
    let address = Address::from_slice(&scratch[..20]);
    let Ok(exists) = machine.exists(address) else {
        return FAILED;
    };
    let Ok(account) = machine.peek(address) else {
        return FAILED;
    };
    scratch[..8].copy_from_slice(&account.info.nonce.to_le_bytes());
    scratch[8..40].copy_from_slice(&account.info.balance.to_be_bytes::<32>());
    scratch[40..72].copy_from_slice(account.info.code_hash.as_slice());
    exists.into()
}

/// Writes the code to the output. Returns its length.
#[unsafe(no_mangle)]
pub extern "C" fn get_code() -> i32 {
    let instance = instance();
    let address = instance.address();
    let Ok(code) = instance.machine.peek_code(address) else {
        return FAILED;
    };
    instance.output.0.clear();
    instance.output.raw(code.original_byte_slice());
    instance.output.0.len() as i32
}

/// Writes the value of a slot to the start of the scratch buffer.
#[unsafe(no_mangle)]
pub extern "C" fn get_storage() -> i32 {
    let instance = instance();
    match instance.machine.peek_storage(instance.address(), instance.slot()) {
        Ok(value) => {
            instance.scratch[..32].copy_from_slice(&value.to_be_bytes::<32>());
            0
        }
        Err(_) => FAILED,
    }
}

/// The nonce is in the place of the slot.
#[unsafe(no_mangle)]
pub extern "C" fn set_account() -> i32 {
    let instance = instance();
    let nonce = instance.slot().wrapping_to::<u64>();
    status(instance.machine.set_account(instance.address(), nonce, instance.value()))
}

#[unsafe(no_mangle)]
pub extern "C" fn set_code(length: usize) -> i32 {
    let instance = instance();
    let code = host::input()[..length].to_vec();
    status(instance.machine.set_code(instance.address(), &code))
}

#[unsafe(no_mangle)]
pub extern "C" fn clear_storage() -> i32 {
    let instance = instance();
    status(instance.machine.clear(instance.address()))
}

#[unsafe(no_mangle)]
pub extern "C" fn set_storage() -> i32 {
    let instance = instance();
    status(instance.machine.set_storage(instance.address(), instance.slot(), instance.value()))
}

#[unsafe(no_mangle)]
pub extern "C" fn preset_storage() {
    let instance = instance();
    instance.machine.preset_storage(instance.address(), instance.slot(), instance.value());
}

#[unsafe(no_mangle)]
pub extern "C" fn end_writes(removes_empty: u32) {
    instance().machine.end_writes(removes_empty != 0);
}

/// Writes all changes of the selected state to the output.
#[unsafe(no_mangle)]
pub extern "C" fn changes() -> usize {
    let instance = instance();
    instance.output.0.clear();
    instance.machine.changes(&mut instance.output);
    instance.output.0.len()
}

/// Writes the addresses of the precompiles of a fork to the output.
#[unsafe(no_mangle)]
pub extern "C" fn precompiles(spec: usize) -> usize {
    let instance = instance();
    instance.output.0.clear();
    let mut addresses: Vec<Address> = chain::standard_precompiles(SPECS[spec]).addresses().copied().collect();
    addresses.sort();
    for address in addresses {
        instance.output.raw(address.as_slice());
    }
    instance.output.0.len()
}

/// Seeds the hash maps, which otherwise hash alike in all instances. Must precede all other calls.
/// The hasher mixes the address of the stack into the seed of each map: each byte of `seed` makes one map at another depth.
#[unsafe(no_mangle)]
pub extern "C" fn seed_maps(seed: u64) {
    for depth in seed.to_le_bytes() {
        make_map_below(depth);
    }
}

#[inline(never)]
fn make_map_below(depth: u8) {
    let frame = [depth; 16];
    core::hint::black_box(&frame);
    if depth == 0 {
        core::hint::black_box(revm::primitives::AddressMap::<u8>::default());
    } else {
        make_map_below(depth - 1);
        core::hint::black_box(&frame);
    }
}

/// Nothing here draws random numbers.
fn no_randomness(_: &mut [u8]) -> Result<(), getrandom::Error> {
    Err(getrandom::Error::UNSUPPORTED)
}
getrandom::register_custom_getrandom!(no_randomness);
