# Words of today, and what the commit before the first fix calls it. before_test.go reads each
# as it stands, sed as an expression: a dot stands for itself in both.
s/custodian/keeper/g
s/Custodian/Keeper/g
s/fragment/piece/g
s/Fragment/Piece/g
s/job.Dispute/job.Contest/g
s/ROLE_CHALLENGER/ROLE_WATCHER/g
s/ProveDraw/Reveal/g
s/ForcedDrawn/LotDrawn/g
s/ForcedDrawDue/LotDue/g
s/ForcedDrawInput/LotInput/g
s/.u.Seed/.u.LotSeed/g
s/ && a.Bonded//g
s/job.Question/job.Request/g
s/.Question(/.Request(/g
s/.Questions()/.Requests()/g
s/.Sample(/.Question(/g
s/c.l.Order.Problem.End(u.Receipt)/u.Receipt.End()/
/o.Conditions.Speculate/d
