// If a name occurs twice, the last value is used, with escapes or without. Unknown members are ignored.
>> {"jsonrpc":"1.0","jsonrpc":"2.0","id":1,"id":2,"method":"fail","method":"m","params":[1],"params":[2]}
<< {"jsonrpc":"2.0","id":2,"result":[2]}
>> {"jsonrpc":"2.0","id":1,"m\u0065thod":"fail","params":[1]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"failed"}}
>> {"extra":{"id":9,"method":"fail"},"jsonrpc":"2.0","id":1,"method":"m","params":[1],"Id":3}
<< {"jsonrpc":"2.0","id":1,"result":[1]}
