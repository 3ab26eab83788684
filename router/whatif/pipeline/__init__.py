"""Pipeline from a model and a request to a folder of tables: chunks of scenarios, engines, table files."""
