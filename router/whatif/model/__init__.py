"""A mesh as data: routers, links, subscribers, demands, groups; and what is wrong with it."""
