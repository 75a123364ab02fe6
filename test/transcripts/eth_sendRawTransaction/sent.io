>> {"jsonrpc":"2.0","id":1,"method":"eth_sendRawTransaction","params":["0x02f86c82038580830f42408504a817c8008252089400000000000000000000000000000000000000cc0180c080a05e99dd48c82717fbe7336a2745c3c5d7747ac88c3714fe67d5b0e7120c1b0a8ea04610f6afcc78be0a3cf873b3be10470d73f01030d1a95ec1abb2d5b175f15465"]}
<< {"jsonrpc":"2.0","id":1,"result":"0x500e2b44c0831699d8784ebb7b75822a28ebfe995fb6ff9fb6a292e55ee3c423"}
== include
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":["0x00000000000000000000000000000000000000cc","pending"]}
<< {"jsonrpc":"2.0","id":1,"result":"0xc"}
// It was sent before.
>> {"jsonrpc":"2.0","id":1,"method":"eth_sendRawTransaction","params":["0x02f86c82038580830f42408504a817c8008252089400000000000000000000000000000000000000cc0180c080a05e99dd48c82717fbe7336a2745c3c5d7747ac88c3714fe67d5b0e7120c1b0a8ea04610f6afcc78be0a3cf873b3be10470d73f01030d1a95ec1abb2d5b175f15465"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"already known"}}
// Its nonce is used.
>> {"jsonrpc":"2.0","id":1,"method":"eth_sendRawTransaction","params":["0x02f86d82038580830f42408504a817c80083030d40945fbdb2315678afecb367f032d93f642f64180aa38080c080a0d4c03a3ef49484d480afadc37b458f3005480e7dd371ac198eb88fb22f9b8214a04b2eaffdf820303ea207a5f207fda3ebfa728cc1cdf99d1a81a9ef71bcd2fcac"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"nonce too low: next nonce 4, tx nonce 0"}}
== seal
// The prefix 0X is accepted, and is sent as 0x. The node rejects 0X.
>> {"jsonrpc":"2.0","id":1,"method":"eth_sendRawTransaction","params":["0X02f86c82038501830f42408504a817c8008252089400000000000000000000000000000000000000cc0280c001a099962f4be431c53c4514ccf8a552177f1b03754d6b5e77422bd5586aa874018ba020240acba73641f1a701cae9cf35f9cf7bfb0513758fdd0a4e09b79066c1503d"]}
<< {"jsonrpc":"2.0","id":1,"result":"0xedffff830e39b83e4c5dfb24ae72d2ead97578d38b7949e2c10fe5b68ba097eb"}
<node {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"a transaction's bytes are missing"}}
// Not a transaction. The node reports that.
>> {"jsonrpc":"2.0","id":1,"method":"eth_sendRawTransaction","params":["0x02ab"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"invalid transaction: not RLP"}}
// An error names its parameter; the node has its own words.
>> {"jsonrpc":"2.0","id":1,"method":"eth_sendRawTransaction","params":["02ab"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid transaction: want bytes of hex with 0x prefix"}}
<node {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"a transaction's bytes are missing"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_sendRawTransaction","params":[]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"missing value for required argument 0: transaction"}}
<node {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"a transaction's bytes are missing"}}
