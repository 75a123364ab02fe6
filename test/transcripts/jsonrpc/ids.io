// The response has the id byte for byte: a large number (erpc/erpc#1092), a fraction, a string with escapes, or null.
>> {"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"m","params":[1]}
<< {"jsonrpc":"2.0","id":123456789012345678901234567890,"result":[1]}
>> {"jsonrpc":"2.0","id":1.50,"method":"m","params":[1]}
<< {"jsonrpc":"2.0","id":1.50,"result":[1]}
>> {"jsonrpc":"2.0","id":-0,"method":"m","params":[1]}
<< {"jsonrpc":"2.0","id":-0,"result":[1]}
>> {"jsonrpc":"2.0","id":1E+2,"method":"m","params":[1]}
<< {"jsonrpc":"2.0","id":1E+2,"result":[1]}
>> {"jsonrpc":"2.0","id":"\u0041\/\"\ud83d","method":"m","params":[1]}
<< {"jsonrpc":"2.0","id":"\u0041\/\"\ud83d","result":[1]}
>> {"jsonrpc":"2.0","id":"é😀","method":"m","params":[1]}
<< {"jsonrpc":"2.0","id":"é😀","result":[1]}
>> {"jsonrpc":"2.0","id":"","method":"m","params":[1]}
<< {"jsonrpc":"2.0","id":"","result":[1]}
>> {"jsonrpc":"2.0","id":null,"method":"m","params":[1]}
<< {"jsonrpc":"2.0","id":null,"result":[1]}
>> {"id" : 7 , "params" : [ 1 ] , "method" : "fail" , "jsonrpc" : "2.0"}
<< {"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"failed"}}
