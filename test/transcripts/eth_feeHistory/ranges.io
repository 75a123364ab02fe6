// A final block, with percentiles.
>> {"jsonrpc":"2.0","id":1,"method":"eth_feeHistory","params":["0x2","0x3",[10,50.5]]}
<< {"jsonrpc":"2.0","id":1,"result":{"baseFeePerGas":["0x3446e542","0x2dc2123f","0xc855"],"gasUsedRatio":[0.0012068166666666666,0.00038085],"baseFeePerBlobGas":["0x1","0x1","0x1"],"blobGasUsedRatio":[0.0,0.0],"oldestBlock":"0x2","reward":[["0xf4240","0xf4240"],["0xf4240","0xf4240"]]}}
// The newest block, without percentiles.
>> {"jsonrpc":"2.0","id":1,"method":"eth_feeHistory","params":[2,"latest"]}
<< {"jsonrpc":"2.0","id":1,"result":{"baseFeePerGas":["0x10592","0xe4e0","0xc855"],"gasUsedRatio":[0.0,0.00110555],"baseFeePerBlobGas":["0x1","0x1","0x1"],"blobGasUsedRatio":[0.0,0.0],"oldestBlock":"0x49","reward":[]}}
// A decimal string is a block count, as in geth (HexOrDecimal64). `null` means no percentiles; anvil rejects it.
>> {"jsonrpc":"2.0","id":1,"method":"eth_feeHistory","params":["2","finalized",null]}
<< {"jsonrpc":"2.0","id":1,"result":{"baseFeePerGas":["0x1489cade","0x11f89183","0xc855"],"gasUsedRatio":[0.0,0.0],"baseFeePerBlobGas":["0x1","0x1","0x1"],"blobGasUsedRatio":[0.0,0.0],"oldestBlock":"0x9","reward":[]}}
<node {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid type: null, expected a sequence"}}
// The node's pending block answers at pending.
>> {"jsonrpc":"2.0","id":1,"method":"eth_feeHistory","params":["0x1","pending",[]]}
<< {"jsonrpc":"2.0","id":1,"result":{"baseFeePerGas":["0xe4e0","0xc855"],"gasUsedRatio":[0.00110555],"baseFeePerBlobGas":["0x1","0x1"],"blobGasUsedRatio":[0.0],"oldestBlock":"0x4a","reward":[]}}
