# What a chunk of the initial copy still has to read is not removed by VACUUM meanwhile: rows that are deleted behind its snapshot come, and then
# their deletes.
# cells: pg15 pg18

use strict;
use warnings;

use CdcBridge::Export;
use CdcBridge::Postgres;
use Test::More;

my $postgres = CdcBridge::Postgres->new(conf => "autovacuum = off\n");
my $export = CdcBridge::Export->new(postgres => $postgres, options => '{"format": "json"}')->setup;

# without a key it is one chunk, and its values take a while to be written
$postgres->psql(<<'SQL');
create schema shop;
create table shop.slow (id int, a numeric[]);
alter table shop.slow replica identity full;
insert into shop.slow select i, array(select x / 8.0 from generate_series(i, i + 59) x) from generate_series(1, 120000) i;
-- the worker's own short transactions have a snapshot too: a chunk has it at many looks in a row
create function chunk_begins() returns text language plpgsql as $$
declare
	pause float8 = 0.003;
	seen int = 0;
begin
	for i in 1 .. 10000 loop
		perform pg_stat_clear_snapshot();
		seen = case when exists (select from pg_stat_activity join pg_stat_cdc_export e using (pid) where backend_xmin is not null and e.state = 'snapshot')
			then seen + 1 else 0 end;
		if seen = 10 then
			return 'began';
		end if;
		perform pg_sleep(pause);
	end loop;
	return 'did not begin';
end $$;
SQL
$export->start->wait_for_state('streaming', 60);
my $during = $postgres->psql(<<'SQL');
select cdc_resync_table('shop_out', 'shop.slow') is not null;
select chunk_begins();
delete from shop.slow where id > 110000;
vacuum (truncate false) shop.slow;
select state from pg_stat_cdc_export_table where table_name = 'slow';
SQL
like($during, qr/began\nsnapshot\z/, 'rows were deleted and the table was vacuumed while a chunk was read');
$export->wait_for_state('streaming', 60)->wait_for_all;

my %count;
for my $line (map { my $file = $_; open(my $in, '<:raw', $file) or die "$file: $!\n"; <$in> } $export->files)
{
	%count = () if $line =~ /"op":"truncate"/;
	$count{$1}++ if $line =~ /"op":"(read|delete)"/;
}
is("$count{read} " . ($count{delete} // 0), '120000 10000', 'all rows that the snapshot saw, and their deletes');
done_testing();
