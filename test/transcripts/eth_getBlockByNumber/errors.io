// Each error names its parameter; anvil has its own words.
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["0x1"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"missing value for required argument 1: fullTransactions"}}
<node {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid length 1, expected tuple variant EthRequest::EthGetBlockByNumber with 2 elements"}}
// geth rejects a number without prefix, and a number above int64. anvil does not.
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["1",false]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid block: hex string without 0x prefix"}}
<node {"jsonrpc":"2.0","id":1,"result":{"hash":"0xc193a86afe472881f7099c4988a9e289e5bdd8e2a70f57d2cb59db37eabc2b95","parentHash":"0xdd969253a4eaf0ae0383c65083d221cd04374eca4a9d050e9a452b7c3132c01b","sha3Uncles":"0x1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347","miner":"0x4200000000000000000000000000000000000011","stateRoot":"0xcda399da6e5fa89a4961de86aaf4dea7791a2f420364b0b02a5e8d122d6b62cc","transactionsRoot":"0xea3e00b49e88ac069e87cb8f27bf1ab8583078c5be13ca30ae233b66d53c90d7","receiptsRoot":"0x3de23ea2e1ad277100a7d16131004f86627143865ef854a9ffb6c4b59f1d6bcc","logsBloom":"0x00000000000000000002000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000008000000000000000000000000000000000000000000000840020000000000000100000800000000000000000000000010000000000000000000000000000000000000000000000000000000000000000200000000000000000000000000000000000000000000000000000000000000000000000000000042000000200000000000000000000000002000000000000000000020000000000000000000000000000000000001000000000000000000000000000000","difficulty":"0x0","number":"0x1","gasLimit":"0x3938700","gasUsed":"0x78c9a","timestamp":"0x6553f13c","extraData":"0x","mixHash":"0x134769119772f0f6d6153f9ed4412f2de7e7a3d3d4daf656587af0e23eaad469","nonce":"0x0000000000000000","baseFeePerGas":"0x3b9aca00","withdrawalsRoot":"0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421","blobGasUsed":"0x0","excessBlobGas":"0x0","parentBeaconBlockRoot":"0x0000000000000000000000000000000000000000000000000000000000000000","requestsHash":"0xe3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","totalDifficulty":"0x0","size":"0xc4b","uncles":[],"transactions":["0xa5a9edd65cca5f0adb7cc213876ce82991b0199b93e8d6f8900c250d509b36cc"],"withdrawals":[]}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["0x8000000000000000",false]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid block: block number larger than int64"}}
<node {"jsonrpc":"2.0","id":1,"result":null}
// An unknown tag.
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["newest",false]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid block: hex string without 0x prefix"}}
<node {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"hex string without 0x prefix"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["0x1","yes"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid fullTransactions: want true or false"}}
<node {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid type: string \"yes\", expected a boolean"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["0x1",false,false]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"too many arguments, want at most 2"}}
<node {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid length 3, expected fewer elements in array"}}
