"""The ports of the services on DynamoDB, SQS and S3."""
