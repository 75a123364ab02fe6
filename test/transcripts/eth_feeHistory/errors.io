// Above the head, forebay answers as geth does: no single node is asked. Each other error names its parameter; anvil has its own words.
>> {"jsonrpc":"2.0","id":1,"method":"eth_feeHistory","params":["0x1","0x100",[]]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"request beyond head block: requested 256, head 74"}}
<node {"jsonrpc":"2.0","id":1,"result":{"baseFeePerGas":["0xc855"],"gasUsedRatio":[],"baseFeePerBlobGas":["0x1"],"oldestBlock":"0x100","reward":[]}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_feeHistory","params":["0x1","latest",["50"]]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid rewardPercentiles[0]: want a number"}}
<node {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid type: string \"50\", expected f64"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_feeHistory","params":["-1","latest",[]]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid blockCount: want a hex quantity with 0x prefix"}}
<node {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"data did not match any variant of untagged enum Numeric"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_feeHistory","params":[]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"missing value for required argument 0: blockCount"}}
<node {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid length 0, expected tuple variant EthRequest::EthFeeHistory with 3 elements"}}
