// A final transaction that reverts.
>> {"jsonrpc":"2.0","id":1,"method":"debug_traceTransaction","params":["0x55910de38f1227f80aad3da01ffa46727da5e74fc3464dfa0086941c825a8f35",{"tracer":"callTracer"}]}
<< {"jsonrpc":"2.0","id":1,"result":{"from":"0x70997970c51812dc3a010c7d01b50e0d17dc79c8","gas":"0x2baf8","gasUsed":"0x5943","to":"0x5fbdb2315678afecb367f032d93f642f64180aa3","input":"0xa9cc4718","output":"0x08c379a00000000000000000000000000000000000000000000000000000000000000020000000000000000000000000000000000000000000000000000000000000000c616c77617973206661696c730000000000000000000000000000000000000000","error":"execution reverted","revertReason":"always fails","value":"0x0","type":"CALL"}}
// A recent one.
>> {"jsonrpc":"2.0","id":1,"method":"debug_traceTransaction","params":["0x8e4bf0c614f9dc9c3dd2aa30379bf08d2209ef2bd71919709ba9e5d443d96750",{"tracer":"callTracer"}]}
<< {"jsonrpc":"2.0","id":1,"result":{"from":"0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266","gas":"0x2b9e0","gasUsed":"0xb115","to":"0x5fbdb2315678afecb367f032d93f642f64180aa3","input":"0x6ed28ed00000000000000000000000000000000000000000000000000000000000000001000000000000000000000000000000000000000000000000000000000000002a","value":"0x0","type":"CALL"}}
// Unknown.
>> {"jsonrpc":"2.0","id":1,"method":"debug_traceTransaction","params":["0x1212121212121212121212121212121212121212121212121212121212121212"]}
<< {"jsonrpc":"2.0","id":1,"result":{"failed":false,"gas":0,"returnValue":"0x","structLogs":[]}}
// An error names its parameter; anvil has its own words.
>> {"jsonrpc":"2.0","id":1,"method":"debug_traceTransaction","params":[]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"missing value for required argument 0: hash"}}
<node {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid length 0, expected tuple variant EthRequest::DebugTraceTransaction with 2 elements"}}
