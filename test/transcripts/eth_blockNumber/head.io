// The served head. It does not count the pending block.
>> {"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}
<< {"jsonrpc":"2.0","id":1,"result":"0x4a"}
== seal
// It follows when the block is sealed.
>> {"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}
<< {"jsonrpc":"2.0","id":1,"result":"0x4b"}
