// Transactions that were sent count at once, as long as they follow without a gap.
>> {"jsonrpc":"2.0","id":1,"method":"eth_sendRawTransaction","params":["0x02f86c82038580830f42408504a817c8008252089400000000000000000000000000000000000000cc0180c080a05e99dd48c82717fbe7336a2745c3c5d7747ac88c3714fe67d5b0e7120c1b0a8ea04610f6afcc78be0a3cf873b3be10470d73f01030d1a95ec1abb2d5b175f15465"]}
<< {"jsonrpc":"2.0","id":1,"result":"0x500e2b44c0831699d8784ebb7b75822a28ebfe995fb6ff9fb6a292e55ee3c423"}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getTransactionCount","params":["0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc","pending"]}
<< {"jsonrpc":"2.0","id":1,"result":"0x1"}
>> {"jsonrpc":"2.0","id":1,"method":"eth_sendRawTransaction","params":["0x02f86c82038503830f42408504a817c8008252089400000000000000000000000000000000000000cc0280c001a0e93a4184d424eec748841f41c1d8c7dfe14e5beb5a7f952afc41d64a44018ee7a0275e8fafea1919b918da04de104a95668dcc2f5e31d21f9fb38d67870815f6e0"]}
<< {"jsonrpc":"2.0","id":1,"result":"0x269ddd055d34e2a536070bd84fcf6b13f65bf5e663643be293ee9885699e264c"}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getTransactionCount","params":["0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc","pending"]}
<< {"jsonrpc":"2.0","id":1,"result":"0x1"}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getTransactionCount","params":["0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc","latest"]}
<< {"jsonrpc":"2.0","id":1,"result":"0x0"}
== include
// Pre-confirmed, it counts once.
>> {"jsonrpc":"2.0","id":1,"method":"eth_getTransactionCount","params":["0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc","pending"]}
<< {"jsonrpc":"2.0","id":1,"result":"0x1"}
== seal
>> {"jsonrpc":"2.0","id":1,"method":"eth_getTransactionCount","params":["0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc","latest"]}
<< {"jsonrpc":"2.0","id":1,"result":"0x1"}
