>> {"jsonrpc":"2.0","id":1,"method":"eth_estimateGas","params":[{"from":"0x70997970c51812dc3a010c7d01b50e0d17dc79c8","to":"0x00000000000000000000000000000000000000cc","value":"0x1"},"pending"]}
<< {"jsonrpc":"2.0","id":1,"result":"0x5208"}
// 0xcc has tokens already. forebay estimates as geth does, which stops 1.5 % above the smallest limit; anvil finds the smallest.
>> {"jsonrpc":"2.0","id":1,"method":"eth_estimateGas","params":[{"from":"0x70997970c51812dc3a010c7d01b50e0d17dc79c8","to":"0x5fbdb2315678afecb367f032d93f642f64180aa3","data":"0xa9059cbb00000000000000000000000000000000000000000000000000000000000000cc0000000000000000000000000000000000000000000000000000000000000001"},"latest"]}
<< {"jsonrpc":"2.0","id":1,"result":"0x8605"}
>> {"jsonrpc":"2.0","id":1,"method":"eth_estimateGas","params":[{"from":"0x70997970c51812dc3a010c7d01b50e0d17dc79c8","to":"0x5fbdb2315678afecb367f032d93f642f64180aa3","data":"0xa9059cbb00000000000000000000000000000000000000000000000000000000000000cc0000000000000000000000000000000000000000000000000000000000000001"},"pending"]}
<< {"jsonrpc":"2.0","id":1,"result":"0x876c"}
<node {"jsonrpc":"2.0","id":1,"result":"0x8605"}
// A slot that becomes non-zero.
>> {"jsonrpc":"2.0","id":1,"method":"eth_estimateGas","params":[{"from":"0x70997970c51812dc3a010c7d01b50e0d17dc79c8","to":"0x5fbdb2315678afecb367f032d93f642f64180aa3","data":"0xa9059cbb00000000000000000000000000000000000000000000000000000000000000dd0000000000000000000000000000000000000000000000000000000000000001"},"pending"]}
<< {"jsonrpc":"2.0","id":1,"result":"0xca5a"}
<node {"jsonrpc":"2.0","id":1,"result":"0xc8d1"}
// It reverts.
>> {"jsonrpc":"2.0","id":1,"method":"eth_estimateGas","params":[{"to":"0x5fbdb2315678afecb367f032d93f642f64180aa3","data":"0xa9cc4718"},"pending"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":3,"message":"execution reverted: always fails","data":"0x08c379a00000000000000000000000000000000000000000000000000000000000000020000000000000000000000000000000000000000000000000000000000000000c616c77617973206661696c730000000000000000000000000000000000000000"}}
