// The work of test/long/support/clients/viem.ts with ethclient. Arguments: the URLs, and the constants of clientWork.ts.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"
)

type constants struct {
	KEY, ACCOUNT, CONTRACT, DEPLOYMENT, IDENTITY, INPUT string
	GAS                                                 uint64
	MAX_FEE, PRIORITY_FEE                               int64
}

func main() {
	var work constants
	if err := json.Unmarshal([]byte(os.Args[3]), &work); err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	client, err := ethclient.Dial(os.Args[1])
	if err != nil {
		panic(err)
	}
	results := map[string]string{}
	step := func(name string, run func() (any, error)) {
		result, err := run()
		text, _ := json.Marshal(result)
		results[name] = string(text)
		if err != nil {
			results[name] = "error: " + err.Error()
		}
	}
	account, contract, identity := common.HexToAddress(work.ACCOUNT), common.HexToAddress(work.CONTRACT), common.HexToAddress(work.IDENTITY)
	heads := make(chan *types.Header, 16)
	var nonce uint64
	var hash common.Hash

	step("chainId", func() (any, error) { return client.ChainID(ctx) })
	step("net_version", func() (any, error) { return client.NetworkID(ctx) })
	step("block", func() (any, error) {
		block, err := client.BlockByNumber(ctx, nil)
		if err != nil {
			return nil, err
		}
		return []any{block.Header(), block.Transactions(), block.Withdrawals()}, nil
	})
	step("balance", func() (any, error) { return client.BalanceAt(ctx, account, nil) })
	step("nonce", func() (any, error) {
		nonce, err = client.PendingNonceAt(ctx, account)
		return nonce, err
	})
	step("call", func() (any, error) {
		return client.CallContract(ctx, ethereum.CallMsg{To: &identity, Data: common.FromHex(work.INPUT)}, nil)
	})
	step("gas", func() (any, error) {
		return client.EstimateGas(ctx, ethereum.CallMsg{From: account, Data: common.FromHex(work.DEPLOYMENT)})
	})
	step("fees", func() (any, error) { return client.SuggestGasTipCap(ctx) })
	step("feeHistory", func() (any, error) { return client.FeeHistory(ctx, 3, nil, []float64{50}) })
	step("subscribe", func() (any, error) {
		socket, err := ethclient.Dial(os.Args[2])
		if err != nil {
			return nil, err
		}
		_, err = socket.SubscribeNewHead(ctx, heads)
		return nil, err
	})
	step("send", func() (any, error) {
		key, err := crypto.HexToECDSA(work.KEY[2:])
		if err != nil {
			return nil, err
		}
		transaction, err := types.SignNewTx(key, types.LatestSignerForChainID(big.NewInt(31337)), &types.DynamicFeeTx{
			ChainID: big.NewInt(31337), Nonce: nonce, Gas: work.GAS, Data: common.FromHex(work.DEPLOYMENT),
			GasFeeCap: big.NewInt(work.MAX_FEE), GasTipCap: big.NewInt(work.PRIORITY_FEE),
		})
		if err != nil {
			return nil, err
		}
		hash = transaction.Hash()
		return hash, client.SendTransaction(ctx, transaction)
	})
	step("receipt", func() (any, error) {
		for {
			receipt, err := client.TransactionReceipt(ctx, hash)
			if err != ethereum.NotFound {
				return receipt, err
			}
			time.Sleep(50 * time.Millisecond)
		}
	})
	step("transaction", func() (any, error) {
		transaction, _, err := client.TransactionByHash(ctx, hash)
		return transaction, err
	})
	step("logs", func() (any, error) {
		return client.FilterLogs(ctx, ethereum.FilterQuery{Addresses: []common.Address{contract}, FromBlock: new(big.Int)})
	})
	step("newHead", func() (any, error) {
		select {
		case head := <-heads:
			return head, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	step("eth_sendTransaction", func() (any, error) {
		var sent common.Hash
		message := map[string]string{"from": work.ACCOUNT, "to": work.IDENTITY, "value": "0x1"}
		return &sent, client.Client().CallContext(ctx, &sent, "eth_sendTransaction", message)
	})
	text, _ := json.Marshal(results)
	fmt.Println(string(text))
}
