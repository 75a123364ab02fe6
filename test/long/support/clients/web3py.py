# The work of test/long/support/clients/viem.ts with web3.py. Arguments: the URLs, and the constants of clientWork.ts.
import asyncio
import json
import sys

from web3 import AsyncWeb3, Web3, WebSocketProvider

url, ws_url, work = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
w3 = Web3(Web3.HTTPProvider(url))
results = {}
state = {}


def step(name, run):
    try:
        results[name] = Web3.to_json(run())
    except Exception as error:
        results[name] = f"error: {error}"


def nonce():
    state["nonce"] = w3.eth.get_transaction_count(work["ACCOUNT"], "pending")
    return state["nonce"]


def send():
    transaction = {
        "chainId": 31337,
        "type": 2,
        "data": work["DEPLOYMENT"],
        "value": 0,
        "nonce": state["nonce"],
        "gas": work["GAS"],
        "maxFeePerGas": work["MAX_FEE"],
        "maxPriorityFeePerGas": work["PRIORITY_FEE"],
    }
    signed = w3.eth.account.sign_transaction(transaction, work["KEY"])
    state["hash"] = w3.eth.send_raw_transaction(signed.raw_transaction)
    return state["hash"]


async def send_and_take_head():
    async with AsyncWeb3(WebSocketProvider(ws_url)) as socket:
        await socket.eth.subscribe("newHeads")
        step("send", send)
        async for message in socket.socket.process_subscriptions():
            return message["result"]


step("chainId", lambda: w3.eth.chain_id)
step("net_version", lambda: w3.net.version)
step("block", lambda: w3.eth.get_block("latest", True))
step("balance", lambda: w3.eth.get_balance(work["ACCOUNT"]))
step("nonce", nonce)
step("call", lambda: w3.eth.call({"to": work["IDENTITY"], "data": work["INPUT"]}))
step("gas", lambda: w3.eth.estimate_gas({"from": work["ACCOUNT"], "data": work["DEPLOYMENT"]}))
step("fees", lambda: [w3.eth.gas_price, w3.eth.max_priority_fee])
step("feeHistory", lambda: w3.eth.fee_history(3, "latest", [50]))
step("newHead", lambda: asyncio.run(asyncio.wait_for(send_and_take_head(), 20)))
step("receipt", lambda: w3.eth.wait_for_transaction_receipt(state["hash"], timeout=20))
step("transaction", lambda: w3.eth.get_transaction(state["hash"]))
step("logs", lambda: w3.eth.get_logs({"address": work["CONTRACT"], "fromBlock": 0, "toBlock": "latest"}))
step(
    "eth_sendTransaction",
    lambda: w3.eth.send_transaction({"from": work["ACCOUNT"], "to": work["IDENTITY"], "value": 1}),
)
print(json.dumps(results))
