# Words of today, and what the commit before the first fix calls it.
s/custodian/keeper/g
s/Custodian/Keeper/g
