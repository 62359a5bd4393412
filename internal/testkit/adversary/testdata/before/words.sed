# Words of today, and what the commit before the first fix calls it.
s/custodian/keeper/g
s/Custodian/Keeper/g
s/fragment/piece/g
s/Fragment/Piece/g
s/job\.Dispute\b/job.Contest/g
s/DisputesAbout/Contests/g
s/ROLE_CHALLENGER/ROLE_WATCHER/g
s/ForcedDrawn/LotDrawn/g
s/ForcedDrawDue/LotDue/g
s/ForcedDrawInput/LotInput/g
s/ForcedSeed/LotSeed/g
