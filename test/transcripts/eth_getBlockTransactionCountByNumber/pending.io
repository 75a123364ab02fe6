>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockTransactionCountByNumber","params":["0x2"]}
<< {"jsonrpc":"2.0","id":1,"result":"0x2"}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockTransactionCountByNumber","params":["latest"]}
<< {"jsonrpc":"2.0","id":1,"result":"0x2"}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockTransactionCountByNumber","params":["pending"]}
<< {"jsonrpc":"2.0","id":1,"result":"0x2"}
// Above the head, forebay answers as geth does: no single node is asked.
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBlockTransactionCountByNumber","params":["0x1000"]}
<< {"jsonrpc":"2.0","id":1,"result":null}
<node {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"BlockOutOfRangeError: block height is 74 but requested was 4096"}}
