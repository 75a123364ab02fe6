>> {"jsonrpc":"2.0","id":1,"method":"eth_getTransactionCount","params":["0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266","0x2"]}
<< {"jsonrpc":"2.0","id":1,"result":"0x2"}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getTransactionCount","params":["0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266","latest"]}
<< {"jsonrpc":"2.0","id":1,"result":"0x3"}
// One of alice's transactions is pre-confirmed.
>> {"jsonrpc":"2.0","id":1,"method":"eth_getTransactionCount","params":["0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266","pending"]}
<< {"jsonrpc":"2.0","id":1,"result":"0x4"}
// Carol has sent none.
>> {"jsonrpc":"2.0","id":1,"method":"eth_getTransactionCount","params":["0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc","pending"]}
<< {"jsonrpc":"2.0","id":1,"result":"0x0"}
