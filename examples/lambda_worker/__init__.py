"""A worker that is a Lambda function: nothing runs while nothing happens."""
