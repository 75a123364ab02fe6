// EIP-7966: code 4 means that the node accepted the transaction, but there is no receipt yet. The node has no timeout.
>> {"jsonrpc":"2.0","id":1,"method":"eth_sendRawTransactionSync","params":["0x02f86c82038580830f42408504a817c8008252089400000000000000000000000000000000000000cc0180c080a05e99dd48c82717fbe7336a2745c3c5d7747ac88c3714fe67d5b0e7120c1b0a8ea04610f6afcc78be0a3cf873b3be10470d73f01030d1a95ec1abb2d5b175f15465",1]}
== include
== seal
<< {"jsonrpc":"2.0","id":1,"error":{"code":4,"message":"Transaction 0x500e2b44c0831699d8784ebb7b75822a28ebfe995fb6ff9fb6a292e55ee3c423 was added to the mempool but wasn't confirmed within 1ms."}}
<node {"jsonrpc":"2.0","id":1,"result":{"type":"0x2","status":"0x1","cumulativeGasUsed":"0x14656","logs":[],"logsBloom":"0x00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000","transactionHash":"0x500e2b44c0831699d8784ebb7b75822a28ebfe995fb6ff9fb6a292e55ee3c423","transactionIndex":"0x2","blockHash":"0x7af1f8e81cf2f0e31429157aacf1c7957a92c84c1baf44bc229c3fe104826b47","blockNumber":"0x4b","gasUsed":"0x5208","effectiveGasPrice":"0x100a95","blobGasPrice":"0x1","from":"0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc","to":"0x00000000000000000000000000000000000000cc","contractAddress":null,"blockTimestamp":1700004500}}
// The timeout has a limit, and is a whole number. The node of these transcripts ignores it.
>> {"jsonrpc":"2.0","id":1,"method":"eth_sendRawTransactionSync","params":["0x02f86c82038580830f42408504a817c8008252089400000000000000000000000000000000000000cc0180c080a05e99dd48c82717fbe7336a2745c3c5d7747ac88c3714fe67d5b0e7120c1b0a8ea04610f6afcc78be0a3cf873b3be10470d73f01030d1a95ec1abb2d5b175f15465",60000]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"already known"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_sendRawTransactionSync","params":["0x02f86c82038580830f42408504a817c8008252089400000000000000000000000000000000000000cc0180c080a05e99dd48c82717fbe7336a2745c3c5d7747ac88c3714fe67d5b0e7120c1b0a8ea04610f6afcc78be0a3cf873b3be10470d73f01030d1a95ec1abb2d5b175f15465",-1]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid timeout: want whole milliseconds"}}
<node {"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"already known"}}
// A fault of the transaction is the error of the node.
>> {"jsonrpc":"2.0","id":1,"method":"eth_sendRawTransactionSync","params":["0x02f86d82038580830f42408504a817c80083030d40945fbdb2315678afecb367f032d93f642f64180aa38080c080a0d4c03a3ef49484d480afadc37b458f3005480e7dd371ac198eb88fb22f9b8214a04b2eaffdf820303ea207a5f207fda3ebfa728cc1cdf99d1a81a9ef71bcd2fcac"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"nonce too low: next nonce 4, tx nonce 0"}}
// An error names its parameter; the node has its own words.
>> {"jsonrpc":"2.0","id":1,"method":"eth_sendRawTransactionSync","params":[]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"missing value for required argument 0: transaction"}}
<node {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"a transaction's bytes are missing"}}
