// The total supply.
>> {"jsonrpc":"2.0","id":1,"method":"eth_getStorageAt","params":["0x5fbdb2315678afecb367f032d93f642f64180aa3","0x0","0x1"]}
<< {"jsonrpc":"2.0","id":1,"result":"0x00000000000000000000000000000000000000000001a784379d99db42000000"}
// stored[1], before and after its first write, and in the pending block.
>> {"jsonrpc":"2.0","id":1,"method":"eth_getStorageAt","params":["0x5fbdb2315678afecb367f032d93f642f64180aa3","0xa15bc60c955c405d20d9149c709e2460f1c2d9a497496a7f46004d1772c3054c","0x3"]}
<< {"jsonrpc":"2.0","id":1,"result":"0x0000000000000000000000000000000000000000000000000000000000000000"}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getStorageAt","params":["0x5fbdb2315678afecb367f032d93f642f64180aa3","0xa15bc60c955c405d20d9149c709e2460f1c2d9a497496a7f46004d1772c3054c","latest"]}
<< {"jsonrpc":"2.0","id":1,"result":"0x000000000000000000000000000000000000000000000000000000000000002a"}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getStorageAt","params":["0x5fbdb2315678afecb367f032d93f642f64180aa3","0xa15bc60c955c405d20d9149c709e2460f1c2d9a497496a7f46004d1772c3054c","pending"]}
<< {"jsonrpc":"2.0","id":1,"result":"0x000000000000000000000000000000000000000000000000000000000000002b"}
// A slot that the pending block has not written.
>> {"jsonrpc":"2.0","id":1,"method":"eth_getStorageAt","params":["0x5fbdb2315678afecb367f032d93f642f64180aa3","0x0","pending"]}
<< {"jsonrpc":"2.0","id":1,"result":"0x00000000000000000000000000000000000000000001a784379d99db42000000"}
// A slot of an account that does not exist.
>> {"jsonrpc":"2.0","id":1,"method":"eth_getStorageAt","params":["0x00000000000000000000000000000000000000dd","0x0","pending"]}
<< {"jsonrpc":"2.0","id":1,"result":"0x0000000000000000000000000000000000000000000000000000000000000000"}
