"""Serves a bucket that only one user may read (pip install 'moto[server,iam,s3]' boto3), and prints the environment of TestRealS3.

moto checks signatures, but not of what is escaped in an address: of these boto3's own are refused as well.
"""

import json
import urllib.request

import boto3
from moto.server import ThreadedMotoServer

PORT = 5599
AT = f"http://127.0.0.1:{PORT}"
ThreadedMotoServer(ip_address="127.0.0.1", port=PORT, verbose=False).start()
anybody = {"endpoint_url": AT, "aws_access_key_id": "x", "aws_secret_access_key": "y", "region_name": "us-east-1"}
s3, iam = boto3.client("s3", **anybody), boto3.client("iam", **anybody)
s3.create_bucket(Bucket="data")
for i in range(3):
    s3.put_object(Bucket="data", Key=f"shards/train-{i:05d}-of-00003.csv", Body=f"a,b\n{i},2\n".encode())
iam.create_user(UserName="reader")
allow = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}
iam.put_user_policy(UserName="reader", PolicyName="read", PolicyDocument=json.dumps(allow))
key = iam.create_access_key(UserName="reader")["AccessKey"]
urllib.request.urlopen(urllib.request.Request(f"{AT}/moto-api/reset-auth", data=b"0", headers={"Content-Type": "text/plain"}))  # from now on
print(f"AWS_ENDPOINT_URL={AT} AWS_ACCESS_KEY_ID={key['AccessKeyId']} AWS_SECRET_ACCESS_KEY={key['SecretAccessKey']} TALLY_S3='s3://data/s*/train-*'", flush=True)
input("until a line is read: ")
