// node transfer.js RPC_URL PRIVATE_KEY_HEX RECIPIENT UTALLY
//
// Sends tokens as any outside wallet would, and prints what the chain says
// before and after as one JSON object.
import { DirectSecp256k1Wallet } from "@cosmjs/proto-signing";
import { SigningStargateClient } from "@cosmjs/stargate";

const denom = "utally";
const [url, key, recipient, amount] = process.argv.slice(2);

const wallet = await DirectSecp256k1Wallet.fromKey(Buffer.from(key, "hex"), "tally");
const [{ address: sender }] = await wallet.getAccounts();
const client = await SigningStargateClient.connectWithSigner(url, wallet, { broadcastPollIntervalMs: 100 });

const balance = async (account) => (await client.getBalance(account, denom)).amount;
const before = { sender: await balance(sender), recipient: await balance(recipient) };
const sent = await client.sendTokens(sender, recipient, [{ denom, amount }], { amount: [{ denom, amount: "20" }], gas: "200000" });
const after = { sender: await balance(sender), recipient: await balance(recipient) };

console.log(JSON.stringify({ chain: await client.getChainId(), sender, code: sent.code, log: sent.rawLog, before, after }));
client.disconnect();
