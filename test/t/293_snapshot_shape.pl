# S8: a source table changes its shape while its chunks are read, and the pipeline is not to follow (schema_changes "exception").
# Whatever the change is, also one that is kept out of the log, the table stops and says why, and a new copy is right; it never
# streams on with rows that were read by the wrong definition. 503_evolve_copy has the same where the pipeline follows.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
my $rows = 90;
# what happens to table T, and what T must say then
my @cases = (
	[ 'added', 'alter table shop.T add column more int not null default 5', qr/was changed by ALTER TABLE|changed while it was copied/ ],
	[ 'first', 'alter table shop.T add column more int not null default 5 first', qr/was changed by ALTER TABLE|changed while it was copied/ ],
	[ 'dropped', 'alter table shop.T drop column w', qr/was changed by ALTER TABLE|changed while it was copied/ ],
	[ 'renamed', 'alter table shop.T change column w ww varchar(20) character set latin1', qr/was changed by ALTER TABLE|changed while it was copied/ ],
	[ 'wider', 'alter table shop.T modify column v bigint', qr/was changed by ALTER TABLE|changed while it was copied/ ],
	[ 'gone', 'drop table shop.T', qr/was changed by DROP TABLE|changed while it was copied/ ],
	[ 'moved', 'rename table shop.T to shop.T_old', qr/was changed by RENAME TABLE|changed while it was copied/ ],
	[ 'emptied', 'truncate table shop.T', qr/was changed by TRUNCATE TABLE|changed while it was copied/ ],
	# not in the log: bytes mean other characters from here on, and nothing else shows it
	[ 'unlogged', 'alter table shop.T modify column w varchar(20) character set utf8mb4', qr/^source table "shop\.unlogged" changed while it was copied$/ ],
	[ 'unseen', 'alter table shop.T add column more int not null default 5', qr/^source table "shop\.unseen" changed while it was copied$/ ],
);
my %unlogged = map { $_ => 1 } qw(unlogged unseen);
$source->sql('create database shop', map {
	my ($table) = @$_;
	("create table shop.$table (id int primary key, v int, w varchar(20) character set latin1)", "insert into shop.$table values " . join(', ', map { "($_, $_, convert(x'c3a9' using latin1))" } 1 .. $rows)) } @cases, [ 'calm' ]);
$source->sql(map { "update shop.$_->[0] set w = convert(_utf8mb4 x'c3a9' using latin1)" } @cases, [ 'calm' ]);
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, options => '{"schema_changes": "exception", "snapshot_chunk_rows": 10, "snapshot_workers": 8, "max_rows_per_second": 120}')->setup;
$postgres->append_conf('max_worker_processes = 30', 'max_replication_slots = 30');
$postgres->append_conf('max_active_replication_origins = 30') if $postgres->major >= 18;
$postgres->restart;
$pipeline->start;

# each is altered in the middle of its copy
my %left = map { $_->[0] => $_ } @cases;
my $middle = 0;
CdcBridge::Env::poll_until(sub {
	for my $table (split(/\n/, $postgres->psql(qq{select source_table from pg_stat_cdc_snapshot where rows_copied between 10 and $rows - 20 and state = 'snapshot'})))
	{
		my $case = delete $left{$table} or next;
		(my $statement = $case->[1]) =~ s/\bT(?=\b|_)/$table/g;
		my $dbh = $source->connect;
		$dbh->do('set sql_log_bin = 0') if $unlogged{$table};
		$dbh->do($statement);
		$middle++;
	}
	return !%left;
}, 60);
is($middle, scalar(@cases), 'S8: each table was altered while its chunks were read') or diag(join(' ', sort keys %left), $pipeline->describe);
$pipeline->wait_for_tables;
for my $case (@cases)
{
	my ($table, $statement, $error) = @$case;
	is($pipeline->table_status($table, 'state'), 'stopped', "S8: $statement: the table is stopped");
	like($pipeline->table_status($table, 'last_error'), $error, 'it says why');
	is($pipeline->table_status($table, 'last_error_sqlstate'), 'YC004', 'with its SQLSTATE');
	like($pipeline->table_status($table, 'last_error_hint'), qr/cdc_resync_table/, 'and the way out');
}
is($pipeline->table_status('calm', 'state'), 'streaming', 'S8: another table goes on');
$pipeline->is_same('S8: and is whole', 'calm');
is($pipeline->status('last_error'), '', 'the pipeline is well');

# the way out
$postgres->psql(join(';', map { "drop table shop.$_" } qw(added first dropped renamed wider unlogged unseen)));
$postgres->psql(join(';', "select cdc_alter_pipeline('shop_in', options => '{\"max_rows_per_second\": 0}')", 'truncate shop.emptied', map { "select cdc_resync_table('shop_in', 'shop.$_')" } qw(added first dropped renamed wider emptied unlogged unseen)));
$source->sql(q{insert into shop.unlogged values (1000, 1, 'é')}, 'update shop.added set more = 6 where id < 5', 'insert into shop.unseen (id, more) values (1000, 9)');
$pipeline->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
$pipeline->is_same('S8: copied anew they are right', qw(added first dropped renamed wider emptied unlogged unseen calm));
unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');
done_testing();
